"""From records to the answer. Imports no TensorFlow."""

from data_parallelism.analysis.answer import Answer
from data_parallelism.analysis.from_records import analyze, answer_from_studies
from data_parallelism.analysis.study_answer import StudyAnswer

__all__ = ["Answer", "StudyAnswer", "analyze", "answer_from_studies"]
