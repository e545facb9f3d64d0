"""From records to the answer. Imports no TensorFlow."""

from data_parallelism.analysis.answer import Answer, StudyAnswer
from data_parallelism.analysis.from_records import analyze, answer_from_studies

__all__ = ["Answer", "StudyAnswer", "analyze", "answer_from_studies"]
