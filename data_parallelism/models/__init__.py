"""Models: one file per family, each a value that builds an ordinary Keras model.

Importing this package imports neither Keras nor TensorFlow.
"""

from data_parallelism.models.fully_connected import FullyConnected
from data_parallelism.models.lstm import Lstm
from data_parallelism.models.resnet_8 import ResNet8
from data_parallelism.models.resnet_50 import ResNet50
from data_parallelism.models.simple_cnn import SimpleCnn
from data_parallelism.models.transformer import Transformer
from data_parallelism.models.vgg_11 import Vgg11

__all__ = ["FullyConnected", "Lstm", "ResNet8", "ResNet50", "SimpleCnn", "Transformer", "Vgg11"]
