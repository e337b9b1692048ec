"""Prints PyTorch's answers for distributed_sampler_test.cpp.

Reads lines "n ranks shuffle seed epoch drop_last" and prints, for each and for every rank, the
rank's indices on one line.
"""
import sys

from torch.utils.data.distributed import DistributedSampler

for line in sys.stdin:
    n, ranks, shuffle, seed, epoch, drop_last = (int(word) for word in line.split())
    for rank in range(ranks):
        sampler = DistributedSampler(range(n), num_replicas=ranks, rank=rank, shuffle=bool(shuffle),
                                     seed=seed, drop_last=bool(drop_last))
        sampler.set_epoch(epoch)
        print(*sampler)
