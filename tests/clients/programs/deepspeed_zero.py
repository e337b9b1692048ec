"""DeepSpeed without its own launcher: init_distributed on gloo, and an engine with ZeRO stage 1."""
import os

import deepspeed
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from client import data, kill_once, network, path, report


def main():
    deepspeed.init_distributed(dist_backend="gloo")
    model = network()
    engine, _, _, _ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
        config={"train_micro_batch_size_per_gpu": 16, "zero_allow_untested_optimizer": True,
                "zero_optimization": {"stage": 1}, "bf16": {"enabled": False}})
    first = 0
    if os.path.exists(path("saved/latest")):
        _, extra = engine.load_checkpoint(path("saved"))
        first = extra["epochs"]
    rows = data()
    sampler = DistributedSampler(rows)
    for epoch in range(first, 4):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(rows, batch_size=16, sampler=sampler):
            loss = torch.nn.functional.mse_loss(engine(x), y)
            engine.backward(loss)
            engine.step()
            if epoch == 2:
                kill_once()
        engine.save_checkpoint(path("saved"), client_state={"epochs": epoch + 1})
    report(engine.module, loss, from_epoch=first, stage=engine.zero_optimization_stage())
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
