"""Three steps of PyTorch's own DistributedDataParallel over Gloo, for ddp_pytorch_test.cpp.

Arguments: a folder, and names of nets below. The folder has one for each net with raw float32
files: `initial` (parameters) and input0 .. input5 (step s of rank r is 2 s + r). Writes `final`
there: parameters, then running means and variances.
"""
import os
import sys

import numpy
import torch
from torch import nn

folder, names = sys.argv[1], sys.argv[2:]


class Residual(nn.Module):

    def __init__(self, ci, co, stride):
        super().__init__()
        self.branch = nn.Sequential(conv(ci, co, 3, stride, False), nn.BatchNorm2d(co), nn.ReLU(),
                                    conv(co, co, 3, 1, False), nn.BatchNorm2d(co))
        self.shortcut = nn.Sequential()
        if ci != co:
            self.shortcut = nn.Sequential(conv(ci, co, 1, stride, False), nn.BatchNorm2d(co))

    def forward(self, x):
        return (self.branch(x) + self.shortcut(x)).relu()


def conv(ci, co, kernel, stride, bias):
    return nn.Conv2d(ci, co, kernel, stride, kernel // 2, bias=bias)


NETS = {
    "convolution":
        lambda: nn.Sequential(conv(3, 8, 3, 1, True), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
                              nn.Linear(512, 600), nn.Tanh(), nn.Linear(600, 10)),
    "mlp":
        lambda: nn.Sequential(nn.Linear(600, 512), nn.ReLU(), nn.Linear(512, 300), nn.Tanh(),
                              nn.Linear(300, 10)),
    "residual":
        lambda: nn.Sequential(conv(3, 8, 3, 1, False), nn.BatchNorm2d(8), nn.ReLU(),
                              Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 32, 2),
                              nn.Flatten(), nn.Linear(128, 10)),
}


def read(path):
    return torch.from_numpy(numpy.fromfile(path, numpy.float32))


def train(rank, name):
    net, here = NETS[name](), f"{folder}/{name}"
    shape = (6, 600) if name == "mlp" else (6, 3, 8, 8)
    initial, begin = read(f"{here}/initial"), 0
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(initial[begin:begin + parameter.numel()].view_as(parameter))
            begin += parameter.numel()
    assert begin == initial.numel()
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)
    labels = torch.arange(6) * 7 % 10
    for step in range(3):
        optimizer.zero_grad()
        images = read(f"{here}/input{2 * step + rank}").view(shape)
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    if rank == 0:
        state = [p.detach() for p in net.parameters()] + [b for b in net.buffers() if b.dim() > 0]
        torch.cat([t.flatten() for t in state]).numpy().tofile(f"{here}/final")


def run(rank):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=2)
    for name in names:
        train(rank, name)
    torch.distributed.barrier()


child = os.fork()  # before any thread runs
run(0 if child else 1)
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
