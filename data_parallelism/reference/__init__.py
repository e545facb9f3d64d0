"""Published facts of Shallue et al. 2019 (JMLR 20:112) as data."""
