"""Prints torchvision's ResNet after torch.manual_seed(seed), for resnet_reference_test.cpp.

Debian has no package of torchvision, so this repeats its published structure: same modules, same
names, same order of construction (torchvision/models/resnet.py, 0.14), with a stem for CIFAR.

usage: resnet_reference.py {18|50} {imagenet|cifar} SEED
One line a parameter: name, shape, first and last element; then the outputs for a
ramp image in evaluation mode, and the names of the buffers.
"""
import sys

import torch
from torch import nn


def conv(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, planes, stride, downsample, kernels, expansion):
        super().__init__()
        self.count = len(kernels)
        for i, kernel in enumerate(kernels, 1):
            outputs = planes * (expansion if i == self.count else 1)
            # Stride on the 3x3: the first of a basic block, the second of a bottleneck.
            own = stride if i == (1 if expansion == 1 else 2) else 1
            setattr(self, f"conv{i}", conv(inputs, outputs, kernel, own))
            setattr(self, f"bn{i}", nn.BatchNorm2d(outputs))
            inputs = outputs
        self.downsample = downsample

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        for i in range(1, self.count + 1):
            x = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x))
            x = (x + shortcut if i == self.count else x).relu()
        return x


class ResNet(nn.Module):
    def __init__(self, depth, stem, classes):
        super().__init__()
        blocks, kernels, self.expansion = {18: ([2, 2, 2, 2], [3, 3], 1),
                                           50: ([3, 4, 6, 3], [1, 3, 1], 4)}[depth]
        self.stem, self.inputs = stem, 64
        self.conv1 = conv(3, 64, 3, 1) if stem == "cifar" else conv(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        for i, count in enumerate(blocks):
            setattr(self, f"layer{i + 1}", self.stage(64 << i, count, 1 if i == 0 else 2, kernels))
        self.fc = nn.Linear(self.inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def stage(self, planes, count, stride, kernels):
        layers, outputs = [], planes * self.expansion
        for i in range(count):
            downsample = None
            if i == 0 and (stride != 1 or self.inputs != outputs):
                downsample = nn.Sequential(conv(self.inputs, outputs, 1, stride),
                                           nn.BatchNorm2d(outputs))
            layers.append(Block(self.inputs, planes, stride if i == 0 else 1, downsample, kernels,
                                self.expansion))
            self.inputs = outputs
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        if self.stem == "imagenet":
            x = nn.functional.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


torch.manual_seed(int(sys.argv[3]))
net = ResNet(int(sys.argv[1]), sys.argv[2], 10).eval()
for name, value in net.named_parameters():
    flat = value.detach().double().flatten()
    print(name, "x".join(map(str, value.shape)), *(f"{v:.9g}" for v in (flat[0], flat[-1])))
with torch.no_grad():
    image = torch.linspace(-1, 1, 3 * 32 * 32).view(1, 3, 32, 32)
    print("output", *(f"{v:.4f}" for v in net(image)[0].tolist()))
for name, _ in net.named_buffers():
    print("buffer", name)
