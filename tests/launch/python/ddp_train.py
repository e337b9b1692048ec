"""A script as PyTorch's users write it: env://, gloo, DistributedDataParallel on a small net. It
knows nothing of its launcher. Prints one line a rank: its loss and a digest of its weights."""
import argparse
import hashlib
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--local_rank", type=int, default=-1)  # ${local_rank} of the launcher
    args = parser.parse_args()
    dist.init_process_group("gloo", init_method="env://")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(),
                                                        torch.nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(args.steps):
        x = torch.randn(32, 8, generator=generator)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    digest = hashlib.sha256(weights).hexdigest()[:16]
    assert args.local_rank in (-1, int(os.environ["LOCAL_RANK"])), args.local_rank
    print(f"rank {rank} of {dist.get_world_size()} weights {digest}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
