"""torchft: one replica group of two ranks. Its Manager connects to the launcher's store at
MASTER_ADDR and MASTER_PORT as a client, before any process group exists."""
import os

import torch
import torch.distributed as dist
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo
from torchft.coordination import LighthouseServer

from client import ATTEMPT, RANK, data, kill_once, network, path, report


def lighthouse():
    """Rank 0 serves it: for one replica group nobody else has to reach it."""
    if RANK != 0:
        return None, "unused: only rank 0 speaks to it"
    server = LighthouseServer(bind="127.0.0.1:0", min_replicas=1, join_timeout_ms=100)
    return server, server.address()


def main():
    server, address = lighthouse()
    dist.init_process_group("gloo") if os.environ.get("CLIENT_GROUP_FIRST") == "1" else None
    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.05)
    if os.path.exists(path("snapshot.pt")):
        model.load_state_dict(torch.load(path("snapshot.pt")))
    manager = Manager(pg=ProcessGroupGloo(), min_replica_size=1, replica_id="one",
                      lighthouse_addr=address, hostname="127.0.0.1", use_async_quorum=False,
                      load_state_dict=model.load_state_dict, state_dict=model.state_dict)
    ddp = DistributedDataParallel(manager, model)
    optimizer = Optimizer(manager, inner)
    x, y = data().tensors
    steps = 0
    while manager.current_step() < 4:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(ddp(x), y)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps == 2:
            if RANK == 0 and ATTEMPT == 0:
                torch.save(model.state_dict(), path("snapshot.pt"))
            kill_once()
    report(model, loss, steps=steps)
    manager.shutdown(wait=False)
    del server


if __name__ == "__main__":
    main()
