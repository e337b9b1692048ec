"""torchft: two replica groups of one process each train the network of restart_worker.cpp. One is
killed by SIGKILL after five steps; the other goes on without it.

    torchft_restart.py [HEARTBEAT_MS]

Prints "killed US" and, at the end of the survivor's next committed step, "stepped US" (a steady
clock's microseconds), and "lost N": the batches whose step was not committed. It starts the two
processes, torchft's lighthouse and a store for each group itself, on the loopback. HEARTBEAT_MS is
the silence after which the lighthouse takes a replica for dead (torchft's default: 5000).
Packages: requirements.txt.
"""

import os
import signal
import subprocess
import sys
import time

import torch
from torch import nn
from torch.distributed import TCPStore
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo
from torchft.coordination import LighthouseServer

STEPS_BEFORE_DEATH = 5


def say(what):
    print(what, time.monotonic_ns() // 1000, flush=True)


def train(replica, lighthouse):
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    manager = Manager(pg=ProcessGroupGloo(), min_replica_size=1, replica_id=f"replica{replica}", rank=0,
                      world_size=1, store_addr="127.0.0.1", store_port=store.port, hostname="127.0.0.1",
                      lighthouse_addr=lighthouse, load_state_dict=net.load_state_dict,
                      state_dict=net.state_dict)
    model = DistributedDataParallel(manager, net)
    optimizer = Optimizer(manager, torch.optim.SGD(net.parameters(), lr=0.1))
    x, y = torch.rand(32, 784), torch.randint(10, (32,))
    together = lost = 0
    while True:
        before = manager.current_step()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        committed = manager.current_step() > before
        alone = manager.num_participants() == 1
        together += committed and not alone
        if replica == 1 and together == STEPS_BEFORE_DEATH:
            say("killed")
            os.kill(os.getpid(), signal.SIGKILL)
        # The last common step may be committed by the other replica alone.
        if replica == 0 and together >= STEPS_BEFORE_DEATH - 1:
            if not committed:
                lost += 1
            elif alone:
                say("stepped")
                print("lost", lost, flush=True)
                os._exit(0)  # the manager would wait for the killed replica


def main(heartbeat_ms):
    lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=1, join_timeout_ms=2000,
                                  heartbeat_timeout_ms=heartbeat_ms)
    replicas = [subprocess.Popen([sys.executable, __file__, str(replica), lighthouse.address()],
                                 stderr=subprocess.DEVNULL) for replica in range(2)]
    try:
        replicas[0].wait(timeout=60)
    finally:
        for replica in replicas:
            replica.kill()
    lighthouse.shutdown()
    sys.exit(replicas[0].returncode)


if len(sys.argv) == 3:
    train(int(sys.argv[1]), sys.argv[2])
else:
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
