"""A training step of PyTorch's DistributedDataParallel over Gloo.

    RANK=r WORLD_SIZE=n MASTER_ADDR=... MASTER_PORT=... ddp_step.py MODEL ddp THREADS STEPS [WARM]

MODEL: rn50 (ResNet-50 for pictures of 32 pixels, batch 32), mlp (3.2 M parameters, batch 64) or
mlp50m (50 M, batch 16); they are those of `lockstep bench ddp`. Mode `single` trains alone.
Prints one line; step_med_ms is the median step in milliseconds.
"""

import os
import statistics
import sys
import time

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.main = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.main(x) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def mlp(width):
    layers = []
    for _ in range(3):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


MODELS = {
    "rn50": (resnet50, (32, 3, 32, 32)),
    "mlp": (lambda: mlp(1024), (64, 1024)),
    "mlp50m": (lambda: mlp(4096), (16, 4096)),
}


def main():
    name, mode, threads, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    warm = int(sys.argv[5]) if len(sys.argv) > 5 else 2
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model = make()
    if mode == "ddp":
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    inputs, labels = torch.randn(shape), torch.randint(0, 10, shape[:1])

    def step():
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        return time.perf_counter() - begin

    for _ in range(warm):
        step()
    if mode == "ddp":
        torch.distributed.barrier()
    times = [step() * 1e3 for _ in range(steps)]
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"ddp,{name},{mode},rank={os.environ.get('RANK', 0)},params={millions:.1f}M,"
          f"step_min_ms={min(times):.2f},step_med_ms={statistics.median(times):.2f}", flush=True)


main()
