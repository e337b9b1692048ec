#!/usr/bin/env python3
"""bench_pictures with PyTorch's DataLoader and torchvision: decode, RandomResizedCrop to 224 pixels,
flip, normalise; no worker process, which on one core would only cost more.

usage: picture_data.py FOLDER SECONDS pillow|tensor
  pillow  ImageFolder, Pillow's decoder and resizing, ToTensor, Normalize
  tensor  torchvision.io.decode_jpeg and transforms v2 on uint8, float32 at the end
       picture_data.py --make FOLDER COUNT WIDTHxHEIGHT [PHOTOS.zip]
  writes COUNT JPEGs of this size, quality 90, of two classes: cut from the photographs of an
  archive, or drawn
Packages: requirements.txt.
"""
import io
import os
import random
import sys
import time
import zipfile

import numpy as np
from PIL import Image

BATCH = 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def photographs(archive, count, size):
    rng = random.Random(1)
    with zipfile.ZipFile(archive) as packed:
        names = [n for n in packed.namelist() if n.lower().endswith((".jpg", ".jpeg"))]
        for i in range(count):
            photo = Image.open(io.BytesIO(packed.read(names[i % len(names)]))).convert("RGB")
            zoom = rng.uniform(1, 1.5) * max(size[0] / photo.width, size[1] / photo.height)
            photo = photo.resize((int(photo.width * zoom) + 1, int(photo.height * zoom) + 1))
            left, top = rng.randint(0, photo.width - size[0]), rng.randint(0, photo.height - size[1])
            yield photo.crop((left, top, left + size[0], top + size[1]))


def drawings(count, size):
    """Coarse colours with finer and finer detail, as photographs have it."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        total = np.zeros((size[1], size[0], 3))
        for side, strength in [(4, 80), (16, 40), (64, 16), (256, 6)]:
            noise = rng.uniform(-strength, strength, (side * 3 // 4, side, 3)) + 128
            layer = Image.fromarray(noise.astype(np.uint8)).resize(size, Image.BICUBIC)
            total += np.asarray(layer, float) - 128
        yield Image.fromarray(np.clip(total + 128, 0, 255).astype(np.uint8))


def make(folder, count, size, archive=None):
    size = tuple(int(side) for side in size.split("x"))
    for name in ["a", "b"]:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    pictures = photographs(archive, count, size) if archive else drawings(count, size)
    for i, picture in enumerate(pictures):
        picture.save(os.path.join(folder, "ab"[i % 2], f"{i:05}.jpg"), quality=90)


def data_set(folder, kind):
    import torch
    from torchvision import datasets, io as tv_io, transforms
    from torchvision.transforms import v2

    if kind == "pillow":
        return datasets.ImageFolder(
            folder,
            transforms.Compose([
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]),
        )
    return datasets.ImageFolder(
        folder,
        v2.Compose([
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]),
        loader=lambda path: tv_io.decode_jpeg(tv_io.read_file(path), mode=tv_io.ImageReadMode.RGB),
    )


def main():
    if sys.argv[1] == "--make":
        make(sys.argv[2], int(sys.argv[3]), *sys.argv[4:6])
        return
    folder, seconds, kind = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(data_set(folder, kind), BATCH, shuffle=True)
    for _ in loader:  # files are in memory from here on
        pass
    count, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        for images, _ in loader:
            count += len(images)
    print(f"{kind},{count / (time.process_time() - begin):.1f}")


if __name__ == "__main__":
    main()
