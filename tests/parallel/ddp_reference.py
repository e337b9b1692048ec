"""Three steps of PyTorch's own DistributedDataParallel over Gloo, for ddp_proof_test.cpp.

Argument: a folder with raw float32 files: `initial` (parameters of the net) and input0 .. input5
(step s of rank r is 2 s + r). Writes `final`: parameters, then running means and variances.
"""
import os
import sys

import numpy
import torch
from torch import nn

folder = sys.argv[1]
rank = int(sys.argv[2]) if len(sys.argv) > 2 else None

if rank is None:
    pids = []
    for r in range(2):
        pids.append(os.spawnl(os.P_NOWAIT, sys.executable, sys.executable, "-W", "ignore", __file__,
                              folder, str(r)))
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    sys.exit(max(abs(code) for code in codes))

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
torch.set_num_threads(1)


def read(name):
    return torch.from_numpy(numpy.fromfile(f"{folder}/{name}", numpy.float32))


net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
                    nn.Linear(512, 600), nn.Tanh(), nn.Linear(600, 10))
initial, begin = read("initial"), 0
with torch.no_grad():
    for parameter in net.parameters():
        parameter.copy_(initial[begin:begin + parameter.numel()].view_as(parameter))
        begin += parameter.numel()
assert begin == initial.numel()

torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                     world_size=2)
model = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9)
labels = torch.arange(6) * 7 % 10
for step in range(3):
    images = read(f"input{2 * step + rank}").view(6, 3, 8, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
if rank == 0:
    state = [p.detach() for p in net.parameters()] + [b for b in net.buffers() if b.dim() > 0]
    torch.cat([t.flatten() for t in state]).numpy().tofile(f"{folder}/final")
torch.distributed.barrier()
