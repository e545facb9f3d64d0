"""Published facts of Shallue et al. 2019 (JMLR 20:112) as data: its studies and their goals.

`published_studies.csv` counts the trials of every study in the published archive, as the summary
that came with it does. `published_workloads.csv` holds the goal that the paper's figures use for
each workload, and how many COMPLETE trials count; where the number is missing all do. For the
workloads below `solution_quality/`, for which the paper names no goal, it is that of the same model
on the same data elsewhere.
"""

from data_parallelism.reference.published import (
    ARCHIVE_SHA256,
    FIXED_METAPARAMETERS,
    PublishedStudy,
    PublishedWorkload,
    published_studies,
    published_workloads,
)

__all__ = [
    "ARCHIVE_SHA256",
    "FIXED_METAPARAMETERS",
    "PublishedStudy",
    "PublishedWorkload",
    "published_studies",
    "published_workloads",
]
