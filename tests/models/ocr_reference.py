"""DBNet R18 and CRNN VGG7 in PyTorch, for ocr_reference_test.cpp.

Written from the networks' description alone. Parameters and statistics have our names, and the same
synthetic values on both sides: the i-th by name is a sine wave of phase i.
usage: ocr_reference.py {dbnet|dbnet++|crnn}
Prints the names; then for training and evaluation the shape of the output, and 64 of its elements.
"""
import sys

import torch
import torch.nn.functional as F
from torch import nn

INF = float("inf")


def conv_bn(module, i, inputs, outputs, kernel, stride):
    setattr(module, f"conv{i}", nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False))
    setattr(module, f"bn{i}", nn.BatchNorm2d(outputs))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        conv_bn(self, 1, inputs, outputs, 3, stride)
        conv_bn(self, 2, outputs, outputs, 3, 1)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        conv_bn(self, 1, 3, 64, 7, 2)
        for i in range(4):
            inputs, outputs = 64 << max(i - 1, 0), 64 << i
            setattr(self, f"layer{i + 1}", nn.Sequential(Block(inputs, outputs, 1 if i == 0 else 2),
                                                         Block(outputs, outputs, 1)))

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        x = F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=-INF), 3, 2)  # Even sizes: one behind.
        maps = []
        for i in range(4):
            x = getattr(self, f"layer{i + 1}")(x)
            maps.append(x)
        return maps


class Fuse(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c // 4, 3, padding=1)
        self.chan_att = nn.Sequential(nn.Conv2d(c // 4, c // 16, 1, bias=False), nn.ReLU(),
                                      nn.Conv2d(c // 16, c // 4, 1, bias=False), nn.Sigmoid())
        self.spat_att = nn.Sequential(nn.Conv2d(1, 1, 3, padding=1, bias=False), nn.ReLU(),
                                      nn.Conv2d(1, 1, 1, bias=False), nn.Sigmoid())
        self.scale_att = nn.Sequential(nn.Conv2d(c // 4, 4, 1, bias=False), nn.Sigmoid())

    def forward(self, maps):
        r = self.conv(torch.cat(maps, 1))
        r = self.chan_att(F.adaptive_avg_pool2d(r, 1)) + r
        s = self.scale_att(self.spat_att(r.mean(1, True)) + r)
        return torch.cat([s[:, i:i + 1] * m for i, m in enumerate(maps)], 1)


class Fpn(nn.Module):
    def __init__(self, c, fuse):
        super().__init__()
        self.unify_channels = nn.ModuleList(nn.Conv2d(64 << i, c, 1, bias=False) for i in range(4))
        self.out = nn.ModuleList(nn.Conv2d(c, c // 4, 3, padding=1, bias=False) for _ in range(4))
        if fuse:
            self.fuse = Fuse(c)

    def forward(self, maps):
        c2, c3, c4, c5 = (conv(m) for conv, m in zip(self.unify_channels, maps))
        c4 = c4 + F.interpolate(c5, scale_factor=2)
        c3 = c3 + F.interpolate(c4, scale_factor=2)
        c2 = c2 + F.interpolate(c3, scale_factor=2)
        p2, p3, p4, p5 = (conv(m) for conv, m in zip(self.out, (c2, c3, c4, c5)))
        maps = [F.interpolate(p5, scale_factor=8), F.interpolate(p4, scale_factor=4),
                F.interpolate(p3, scale_factor=2), p2]
        return self.fuse(maps) if hasattr(self, "fuse") else torch.cat(maps, 1)


class DbHead(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.segm, self.thresh = self.branch(c), self.branch(c)

    @staticmethod
    def branch(c):
        i = c // 4
        return nn.Sequential(nn.Conv2d(c, i, 3, padding=1, bias=False), nn.BatchNorm2d(i), nn.ReLU(),
                             nn.ConvTranspose2d(i, i, 2, 2), nn.BatchNorm2d(i), nn.ReLU(),
                             nn.ConvTranspose2d(i, 1, 2, 2), nn.Sigmoid())

    def forward(self, x):
        binary = self.segm(x)
        if not self.training:
            return binary
        thresh = self.thresh(x)
        return torch.cat([binary, thresh, torch.sigmoid(50 * binary - thresh)], 1)


class VggConv(nn.Module):
    def __init__(self, inputs, outputs, kernel, norm):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2 if kernel == 3 else 0)
        if norm:
            self.bn = nn.BatchNorm2d(outputs, eps=1e-4)

    def forward(self, x):
        x = self.conv(x)
        return (self.bn(x) if hasattr(self, "bn") else x).relu()


class Vgg7(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [3, 64, 128, 256, 256, 512, 512, 512]
        for i in range(1, 8):
            setattr(self, f"conv{i}", VggConv(widths[i - 1], widths[i], 2 if i == 7 else 3,
                                              i in (3, 5, 7)))

    def forward(self, x):
        x = F.max_pool2d(self.conv1(x), 2)
        x = F.max_pool2d(self.conv2(x), 2)
        x = F.max_pool2d(self.conv4(self.conv3(x)), (2, 1))
        x = F.max_pool2d(self.conv6(self.conv5(x)), (2, 1))
        return self.conv7(x)


class Rnn(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.seq_encoder = nn.LSTM(inputs, hidden, 2, bidirectional=True)

    def forward(self, x):
        return self.seq_encoder(x[:, :, 0].permute(2, 0, 1))[0]


class CtcHead(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.dense1 = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.dense1(x)
        return x if self.training else x.softmax(2).transpose(0, 1)


def fill(net):
    values = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    names = sorted(name for name in values if not name.endswith("num_batches_tracked"))
    for i, name in enumerate(names):
        value = values[name]
        wave = torch.sin(0.7 * torch.arange(value.numel(), dtype=torch.double) + i)
        if value.dim() > 1:
            wave *= 2 / (value.numel() / value.shape[0]) ** 0.5
        elif name.endswith(("running_var", ".weight")):
            wave = 1 + 0.5 * wave
        else:
            wave *= 0.1
        value.data.copy_(wave.view(value.shape))
    return names


which = sys.argv[1]
if which == "crnn":
    net = nn.Sequential()
    net.backbone, net.neck, net.head = Vgg7(), Rnn(512, 16), CtcHead(32, 11)
    shape = (2, 3, 32, 40)
else:
    net = nn.Sequential()
    net.backbone, net.neck, net.head = ResNet18(), Fpn(32, which == "dbnet++"), DbHead(32)
    shape = (2, 3, 64, 96)
for name in fill(net):
    print("name", name)
count = torch.Size(shape).numel()
image = torch.sin(torch.arange(count, dtype=torch.double) * 0.013).float().view(shape)
with torch.no_grad():
    for training in (True, False):
        out = net.train(training)(image)
        print("shape", *out.shape)
        flat = out.flatten()
        for i in range(64):
            print("value", flat[i * (len(flat) - 1) // 63].item())
