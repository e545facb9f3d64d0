"""The workloads of the paper that several of its figures show, by their names in the archive."""

from __future__ import annotations

CNN_MNIST = "mnist/simple_cnn_base/nesterov_momentum"
CNN_FASHION = "fashion_mnist/simple_cnn_base/nesterov_momentum"
RESNET_8 = "cifar_10/resnet_8/nesterov_momentum"
RESNET_50 = "imagenet/resnet_50/nesterov_momentum"
OPEN_IMAGES = "open_images_v4/resnet_50/nesterov_momentum"
VGG = "imagenet/vgg_11/nesterov_momentum"
TRANSFORMER = "lm1b/transformer_base/nesterov_momentum"
TRANSFORMER_SHALLOW = "lm1b/transformer_shallow/nesterov_momentum"
TRANSFORMER_WIDE = "lm1b/transformer_wide/nesterov_momentum"
TRANSFORMER_NARROW = "lm1b/transformer_narrow_and_shallow/nesterov_momentum"
COMMON_CRAWL = "common_crawl/transformer_base/nesterov_momentum"
LSTM = "lm1b/lstm/nesterov_momentum"

# Panels of figures 1 and 8: title, workload, and the axis of steps where the paper fixes it.
NINE = (
    ("Simple CNN on MNIST", CNN_MNIST, None),
    ("Simple CNN on Fashion MNIST", CNN_FASHION, None),
    ("ResNet-8 on CIFAR-10", RESNET_8, None),
    ("ResNet-50 on ImageNet", RESNET_50, None),
    ("ResNet-50 on Open Images", OPEN_IMAGES, None),
    ("Transformer on LM1B", TRANSFORMER, None),
    ("Transformer on Common Crawl", COMMON_CRAWL, None),
    ("VGG-11 on ImageNet", VGG, None),
    ("LSTM on LM1B", LSTM, (2.0**13, 2.0**21)),
)
