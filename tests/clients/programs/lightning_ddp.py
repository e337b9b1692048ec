"""Lightning's Trainer with strategy ddp. It must take the ranks from the launcher (it looks for
TORCHELASTIC_RUN_ID) and start no processes of its own."""
import os
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch.utils.data import DataLoader

from client import data, kill_once, network, path, report


class Regression(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = network()
        self.last = torch.tensor(0.0)

    def training_step(self, batch, _):
        x, y = batch
        self.last = torch.nn.functional.mse_loss(self.net(x), y)
        self.log("loss", self.last, sync_dist=True)
        return self.last

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


class KillOnce(Callback):
    def on_train_batch_end(self, trainer, *_):
        if trainer.current_epoch == 2:
            kill_once()


def main():
    warnings.filterwarnings("ignore")
    L.seed_everything(5)
    saves = ModelCheckpoint(dirpath=path("checkpoints"), save_last=True, every_n_epochs=1)
    trainer = L.Trainer(accelerator="cpu", strategy="ddp", devices=2, max_epochs=4, logger=False,
                        enable_progress_bar=False, enable_model_summary=False,
                        callbacks=[saves, KillOnce()])
    environment = type(trainer.strategy.cluster_environment).__name__
    last = path("checkpoints/last.ckpt")
    model = Regression()
    resumed = os.path.exists(last)
    trainer.fit(model, DataLoader(data(), batch_size=16, shuffle=True),
                ckpt_path=last if resumed else None)
    report(model.net, trainer.callback_metrics["loss"], environment=environment, resumed=int(resumed))


if __name__ == "__main__":
    main()
