"""Curves on disk. Imports no TensorFlow."""

from data_parallelism.records.schema import (
    COMPLETE,
    INCOMPLETE,
    INFEASIBLE,
    STATUSES,
    Curve,
    StudyRecord,
    TrialRecord,
)
from data_parallelism.records.store import (
    each_trial,
    find_studies,
    finished_trial_ids,
    read_json,
    read_study,
    read_trial,
    set_aside,
    study_dir,
    write_json,
    write_text,
    write_trial,
)
from data_parallelism.records.tfrecord import (
    Damaged,
    decode_columns,
    encode_columns,
    read_records,
    write_records,
)

__all__ = [
    "COMPLETE",
    "INCOMPLETE",
    "INFEASIBLE",
    "STATUSES",
    "Curve",
    "Damaged",
    "StudyRecord",
    "TrialRecord",
    "decode_columns",
    "each_trial",
    "encode_columns",
    "find_studies",
    "finished_trial_ids",
    "read_json",
    "read_records",
    "read_study",
    "read_trial",
    "set_aside",
    "study_dir",
    "write_json",
    "write_records",
    "write_text",
    "write_trial",
]
