"""Saves weights with PyTorch into the folder of the first argument: plain.pth, nested.pth, old.pth, old4.pth, module.pth,
general.pth, kinds.pth, jit.pt."""
import argparse
import collections
import copy
import pathlib
import sys

import torch

folder = pathlib.Path(sys.argv[1])


class SmallNet(torch.nn.Module):
    """The network of small_net.h."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.last = torch.nn.Linear(8, 2)


net = SmallNet()
with torch.no_grad():
    for i, value in enumerate(net.state_dict().values()):
        value.copy_(torch.arange(value.numel()).reshape(value.shape) * 0.5 + i)
state = net.state_dict()
torch.save(state, folder / "plain.pth")
strided = collections.OrderedDict(("module." + name, value) for name, value in state.items())
strided["module.first.weight"] = state["first.weight"].t().contiguous().t()
strided["module.last.weight"] = torch.nn.Parameter(state["last.weight"].double())
strided["module.last.bias"] = torch.cat([torch.zeros(3), state["last.bias"]])[3:]
other = copy.deepcopy(net)
optimizer = torch.optim.Adam(other.parameters())
other.last(other.norm(other.first(torch.ones(2, 4)))).sum().backward()
optimizer.step()
torch.save({"epoch": 3, "lr": 0.1, "args": argparse.Namespace(name="x"), "optimizer": optimizer.state_dict(),
            "state_dict": strided}, folder / "nested.pth", pickle_protocol=4)
torch.save(state, folder / "old.pth", _use_new_zipfile_serialization=False)
torch.save({"model": strided}, folder / "old4.pth", _use_new_zipfile_serialization=False, pickle_protocol=4)
torch.save(net, folder / "module.pth")
kinds = dict(state)
kinds["first.weight"] = torch.quantize_per_tensor(state["first.weight"], 0.5, 0, torch.qint8)
kinds["last.weight"] = state["last.weight"].to_sparse()
kinds["spare"] = torch.zeros(2, dtype=torch.complex128)
torch.save(kinds, folder / "kinds.pth")
torch.jit.script(net).save(folder / "jit.pt")
ema = {name: value * 1 for name, value in state.items()}
torch.save({"epoch": 1, "model_ema": ema, "model_state_dict": state, "optimizer_state_dict": optimizer.state_dict(),
            "loss": torch.tensor(1.0), "swa": dict(ema)}, folder / "general.pth")
