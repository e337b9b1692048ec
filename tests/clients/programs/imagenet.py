"""In the manner of PyTorch's ImageNet example: a small ResNet on drawn pictures (its --dummy), a
validation whose counts are summed over the ranks, and the best checkpoint."""
import argparse
import os
import shutil

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from client import kill_once, path, report


class Drawn(Dataset):
    """Noise with a bright quarter, which is the label."""

    def __init__(self, rows, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(4, (rows,), generator=generator)
        self.images = torch.rand(rows, 3, 16, 16, generator=generator)
        for image, label in zip(self.images, self.labels):
            y, x = 8 * (int(label) // 2), 8 * (int(label) % 2)
            image[:, y:y + 8, x:x + 8] += 0.5

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                                  nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
                                  nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                                  nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


def small_resnet():
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), Block(8), Block(8),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4))


def validate(model, loader):
    model.eval()
    counts = torch.zeros(2)
    with torch.no_grad():
        for images, labels in loader:
            counts += torch.tensor([float((model(images).argmax(1) == labels).sum()), len(labels)])
    dist.all_reduce(counts, dist.ReduceOp.SUM)
    return 100 * float(counts[0] / counts[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dist-url", default="env://")
    parser.add_argument("--dist-backend", default="gloo")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    dist.init_process_group(args.dist_backend, init_method=args.dist_url)
    model = DistributedDataParallel(small_resnet())
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    first, best = 0, 0.0
    if os.path.exists(path("checkpoint.pth.tar")):
        saved = torch.load(path("checkpoint.pth.tar"))
        first, best = saved["epoch"], saved["best"]
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
    train, test = Drawn(128, 1), Drawn(64, 2)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=16, sampler=sampler, num_workers=1)
    tests = DataLoader(test, batch_size=16,
                       sampler=DistributedSampler(test, shuffle=False, drop_last=True))
    for epoch in range(first, args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if epoch == 1:
                kill_once()
        scheduler.step()
        accuracy = validate(model, tests)
        if dist.get_rank() == 0:
            torch.save({"epoch": epoch + 1, "best": max(best, accuracy), "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict()},
                       path("checkpoint.pth.tar"))
            if accuracy > best:
                shutil.copyfile(path("checkpoint.pth.tar"), path("model_best.pth.tar"))
        best = max(best, accuracy)
    report(model, loss, from_epoch=first, accuracy=f"{best:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
