"""What the programs here share: data, the kill of one worker, and the line that is compared.

CLIENT_FOLDER is an empty folder of this run, for snapshots and the result. The rank CLIENT_KILL
kills itself once, in the first attempt: for the launcher that is a kill -9 from outside.
"""
import hashlib
import os
import signal

import torch
from torch.utils.data import TensorDataset

FOLDER = os.environ["CLIENT_FOLDER"]
RANK = int(os.environ["RANK"])
ATTEMPT = int(os.environ["TORCHELASTIC_RESTART_COUNT"])


def path(name):
    return os.path.join(FOLDER, name)


def kill_once():
    """Called where both ranks have just exchanged gradients, after the first snapshot."""
    if os.environ.get("CLIENT_KILL") == str(RANK) and ATTEMPT == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def data(rows=256):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(rows, 8, generator=generator)
    return TensorDataset(x, x.sum(1, keepdim=True))


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def report(model, loss, **facts):
    """The result of rank 0. The number of attempts counts restarts."""
    if RANK != 0:
        return
    weights = b"".join(p.detach().float().cpu().numpy().tobytes() for p in model.parameters())
    facts |= {"restarts": ATTEMPT, "world": os.environ["WORLD_SIZE"], "loss": f"{float(loss):.6f}",
              "weights": hashlib.sha256(weights).hexdigest()[:12]}
    with open(path("result"), "w") as file:
        file.write(" ".join(f"{name}={value}" for name, value in facts.items()) + "\n")
