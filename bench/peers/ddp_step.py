"""A training step of PyTorch: alone, or with DistributedDataParallel over Gloo.

    RANK=r WORLD_SIZE=n MASTER_ADDR=... MASTER_PORT=... ddp_step.py MODEL MODE STEPS WARM [DEVICE]

MODEL: resnet50 (CIFAR stem, batch 32), mlp3m (batch 64), mlp50m (batch 16) or transformer25m (12
layers, batch 8 of 32 tokens); they are those of `lockstep bench ddp`, which does the same steps.
MODE: `independent` trains without communication; `ddp` has the defaults; `ddp:view` keeps
gradients in the buckets, `ddp:static` also promises an unchanging graph, `ddp:whole` has one bucket.
DEVICE: cpu (default), or cuda:0, which all ranks share, with batches eight times as large. There a
rank that is alone takes NCCL.
Prints one line; step_med_ms is the median step in milliseconds. Packages: requirements.txt but
torchft.
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


class TransformerLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, tokens, width = x.shape
        q, k, v = (self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads)
                   .permute(2, 0, 3, 1, 4).unbind(0))
        weights = torch.softmax(q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5, -1)
        return self.projection((weights @ v).transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, layers, width, heads):
        super().__init__()
        self.layers = nn.Sequential(*(TransformerLayer(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.layers(x).mean(1))


MODELS = {
    "resnet50": (resnet50, (32, 3, 32, 32)),
    "mlp3m": (lambda: mlp(1024), (64, 1024)),
    "mlp50m": (lambda: mlp(4096), (16, 4096)),
    "transformer25m": (lambda: Transformer(12, 416, 8), (8, 32, 416)),
}
SETTINGS = {
    "ddp": {},
    "ddp:view": {"gradient_as_bucket_view": True},
    "ddp:static": {"gradient_as_bucket_view": True, "static_graph": True},
    "ddp:whole": {"gradient_as_bucket_view": True, "bucket_cap_mb": 1000},
}


def main():
    name, mode, steps, warm = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    device = torch.device(sys.argv[5] if len(sys.argv) > 5 else "cpu")
    make, shape = MODELS[name]
    if device.type == "cuda":
        shape = (8 * shape[0], *shape[1:])
    model = make().to(device)
    # Independent ranks form a group too, to begin together.
    alone = os.environ["WORLD_SIZE"] == "1"
    torch.distributed.init_process_group("nccl" if alone and device.type == "cuda" else "gloo")
    if mode != "independent":
        model = nn.parallel.DistributedDataParallel(model, **SETTINGS[mode])
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    inputs = torch.randn(shape).to(device)
    labels = torch.randint(0, 10, shape[:1]).to(device)
    ended = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def step():
        ended()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        ended()
        return time.perf_counter() - begin

    for _ in range(warm):
        step()
    torch.distributed.barrier()
    times = [step() * 1e3 for _ in range(steps)]
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    print(f"{name},{mode},torch={torch.__version__},rank={os.environ['RANK']},params={millions:.1f}M,"
          f"step_min_ms={min(times):.2f},step_med_ms={statistics.median(times):.2f}", flush=True)
    torch.distributed.barrier()


main()
