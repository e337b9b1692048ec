"""Three steps of PyTorch with its autocast or a cast module, for amp_pytorch_test.cpp.

Arguments: a folder with raw float32 files `initial` (parameters) and input0 .. input2. Writes O1 and
O2 there: parameters after the steps, then running means and variances.
"""
import sys

import numpy
import torch
from torch import nn

folder = sys.argv[1]


def read(path):
    return torch.from_numpy(numpy.fromfile(f"{folder}/{path}", numpy.float32))


def make_net():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16),
                        nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
    initial, begin = read("initial"), 0
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(initial[begin:begin + parameter.numel()].view_as(parameter))
            begin += parameter.numel()
    assert begin == initial.numel()
    return net


def steps(net, weights, forward, after_backward, after_step, name):
    optimizer = torch.optim.SGD(weights, 0.1, 0.9)
    labels = torch.arange(6) * 7 % 10
    for step in range(3):
        net.zero_grad()
        optimizer.zero_grad()
        output = forward(read(f"input{step}").view(6, 3, 8, 8)).float()
        (nn.functional.cross_entropy(output, labels) * 1024).backward()
        after_backward()
        for weight in weights:
            weight.grad /= 1024
        optimizer.step()
        after_step()
    state = [w.detach().float() for w in weights] + [b for b in net.buffers() if b.dim() > 0]
    torch.cat([t.flatten() for t in state]).numpy().tofile(f"{folder}/{name}")


def autocast(net):

    def forward(images):
        with torch.autocast("cpu", torch.bfloat16):
            return net(images)

    steps(net, list(net.parameters()), forward, lambda: None, lambda: None, "O1")


def cast_with_masters(net):
    masters = [p.detach().clone().requires_grad_() for p in net.parameters()]
    for module in net:
        if not isinstance(module, nn.BatchNorm2d):
            module.bfloat16()

    def take_gradients():
        for master, parameter in zip(masters, net.parameters()):
            master.grad = parameter.grad.float()

    def publish():
        with torch.no_grad():
            for master, parameter in zip(masters, net.parameters()):
                parameter.copy_(master)

    steps(net, masters, lambda images: net(images.bfloat16()), take_gradients, publish, "O2")


torch.set_num_threads(1)
autocast(make_net())
cast_with_masters(make_net())
