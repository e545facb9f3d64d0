"""Models: one file per family, each a value that builds an ordinary Keras model.

Importing this package imports neither Keras nor TensorFlow.
"""

from data_parallelism.models.fully_connected import FullyConnected
from data_parallelism.models.resnet_8 import ResNet8
from data_parallelism.models.simple_cnn import SimpleCnn

__all__ = ["FullyConnected", "ResNet8", "SimpleCnn"]
