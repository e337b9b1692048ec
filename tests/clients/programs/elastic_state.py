"""In the manner of torchelastic's examples: after a restart the rank with the newest state gives it
to the others by broadcast. So only one rank needs its file. The @record of elastic wraps main."""
import io
import os

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from client import data, kill_once, network, path, report


class State:
    def __init__(self, model, optimizer):
        self.epoch, self.model, self.optimizer = -1, model, optimizer

    def save(self, place):
        torch.save({"epoch": self.epoch, "model": self.model.state_dict(),
                    "optimizer": self.optimizer.state_dict()}, place)

    def load(self, place):
        saved = torch.load(place)
        self.epoch = saved["epoch"]
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])

    def agree(self):
        """Everyone takes the state of the rank that has got furthest."""
        epochs = torch.zeros(dist.get_world_size(), dtype=torch.long)
        epochs[dist.get_rank()] = self.epoch
        dist.all_reduce(epochs)
        newest = int(epochs.argmax())
        if int(epochs.max()) < 0:
            return
        blob = io.BytesIO()
        self.save(blob)
        size = torch.tensor(len(blob.getvalue()))
        dist.broadcast(size, newest)
        content = torch.empty(int(size), dtype=torch.uint8)
        if dist.get_rank() == newest:
            content = torch.frombuffer(bytearray(blob.getvalue()), dtype=torch.uint8)
        dist.broadcast(content, newest)
        if dist.get_rank() != newest:
            self.load(io.BytesIO(content.numpy().tobytes()))


@record
def main():
    assert dist.is_torchelastic_launched()
    dist.init_process_group("gloo", init_method="env://")
    model = DistributedDataParallel(network())
    state = State(model, torch.optim.Adam(model.parameters(), lr=0.01))
    own = path(f"state_{os.environ['RANK']}.pt")
    if os.path.exists(own):
        state.load(own)
    state.agree()
    first = state.epoch + 1
    rows = data()
    sampler = DistributedSampler(rows)
    for epoch in range(first, 4):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(rows, batch_size=16, sampler=sampler):
            loss = torch.nn.functional.mse_loss(model(x), y)
            state.optimizer.zero_grad()
            loss.backward()
            state.optimizer.step()
            if epoch == 2:
                kill_once()
        state.epoch = epoch
        if dist.get_rank() == 0:
            state.save(own)
    report(model, loss, from_epoch=first, run_id_set=int(bool(os.environ["TORCHELASTIC_RUN_ID"])),
           max_restarts=os.environ["TORCHELASTIC_MAX_RESTARTS"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
