"""torch.distributed.checkpoint, measured like Lockstep's checkpoints in bench_checkpoint.

    torchrun --nproc_per_node 2 checkpoint_save.py FOLDER [ROUNDS]

Every rank has the same 25 M parameters and as many values of momentum; the ranks share the writing.
Packages: requirements.txt but torchft.
"""

import shutil
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict


def timed(action):
    dist.barrier()
    begin = time.perf_counter()
    result = action()
    dist.barrier()
    return (time.perf_counter() - begin) * 1e3, result


def main():
    folder, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    dist.init_process_group("gloo")
    writers = dist.new_group()  # for the thread of async_save: its calls run beside this thread's
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(6))))
    optimizer = torch.optim.SGD(net.parameters(), 0.1, 0.9)
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    times = {"saved": [], "held": [], "loaded": []}
    for round in range(rounds):
        def content():
            model, momentum = get_state_dict(net, optimizer)
            return {"model": model, "optimizer": momentum}

        place = f"{folder}/step_{round}"
        times["saved"].append(timed(lambda: dcp.save(content(), checkpoint_id=place))[0])
        took, future = timed(lambda: dcp.async_save(
            content(), checkpoint_id=f"{place}_async", process_group=writers))
        times["held"].append(took)
        future.result()
        state = content()
        times["loaded"].append(timed(lambda: dcp.load(state, checkpoint_id=place))[0])
        if dist.get_rank() == 0:
            shutil.rmtree(place)
            shutil.rmtree(f"{place}_async")
        dist.barrier()
    if dist.get_rank() == 0:
        for what, values in times.items():
            print(f"pytorch,{what},min_ms={min(values):.1f},median_ms={statistics.median(values):.1f}")
    dist.destroy_process_group()


main()
