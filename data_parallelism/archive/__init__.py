"""The layout of the paper's published archive: from it to records, and back. No TensorFlow."""
