"""The ResNet-50 of MindSpore's tutorial on distributed training, with the names of MindCV's ResNets.

All padding is "same". A bottleneck has its stride in the first 1x1 convolution. Weights start Xavier
uniform, scales of norms and the last bias in U(-0.07, 0.07). Norms keep 0.99 of their statistics.
"""
from mindspore import nn


def conv(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="same", weight_init="XavierUniform")


def norm(channels):
    return nn.BatchNorm2d(channels, momentum=0.99, eps=1e-5, gamma_init="uniform")


class Bottleneck(nn.Cell):
    def __init__(self, inputs, planes, stride):
        super().__init__()
        outputs = 4 * planes
        self.conv1, self.bn1 = conv(inputs, planes, 1, stride), norm(planes)
        self.conv2, self.bn2 = conv(planes, planes, 3, 1), norm(planes)
        self.conv3, self.bn3 = conv(planes, outputs, 1, 1), norm(outputs)
        self.relu = nn.ReLU()
        self.down_sample = None
        if inputs != outputs:
            self.down_sample = nn.SequentialCell(conv(inputs, outputs, 1, stride), norm(outputs))

    def construct(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.down_sample is None else self.down_sample(x)))


class ResNet50(nn.Cell):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1, self.bn1, self.relu = conv(3, 64, 7, 2), norm(64), nn.ReLU()
        self.max_pool = nn.MaxPool2d(kernel_size=3, stride=2, pad_mode="same")
        inputs, stages = 64, []
        for stage, blocks in enumerate((3, 4, 6, 3)):
            planes, cells = 64 << stage, []
            for i in range(blocks):
                cells.append(Bottleneck(inputs, planes, 2 if stage > 0 and i == 0 else 1))
                inputs = 4 * planes
            stages.append(nn.SequentialCell(cells))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.classifier = nn.Dense(inputs, num_classes, weight_init="XavierUniform",
                                   bias_init="uniform")

    def construct(self, x):
        x = self.max_pool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.classifier(x.mean((2, 3)))
