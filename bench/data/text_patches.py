#!/usr/bin/env python3
"""Cuts a data set of two classes, text and no text, from photographs with labelled words.

usage: text_patches.py DATA_FOLDER OUT_FOLDER
  DATA_FOLDER  has ocr_det/train.zip and ocr_det/test.zip: NAME_images/*.jpg and NAME_gts/gt_*.txt
               with lines `x1,y1,x2,y2,x3,y3,x4,y4,text`
  OUT_FOLDER   gets train/text, train/none, val/text, val/none: JPEGs of 256 x 256, quality 90;
               a test photograph's patches are all in val
Packages: the pillow of requirements.txt.
"""
import io
import os
import random
import sys
import zipfile

from PIL import Image

SIDE = 256
MOST_OF_A_PHOTO = 12
SMALLEST_WORD = 10  # pixels; below that even a reader sees no letters


def boxes_of(text):
    """Left, top, right and bottom of each word."""
    boxes = []
    for line in text.splitlines():
        corners = [int(value) for value in line.split(",", 8)[:8]]
        boxes.append((min(corners[0::2]), min(corners[1::2]), max(corners[0::2]), max(corners[1::2])))
    return boxes


def patches_of(photo, boxes, rng):
    """Pairs of a class and a patch, as many of one class as of the other where there is room."""
    words = [box for box in boxes if box[3] - box[1] >= SMALLEST_WORD]
    rng.shuffle(words)
    for left, top, right, bottom in words[:MOST_OF_A_PHOTO]:
        x = (left + right) // 2 - SIDE // 2 + rng.randint(-60, 60)
        y = (top + bottom) // 2 - SIDE // 2 + rng.randint(-60, 60)
        x, y = min(max(x, 0), photo.width - SIDE), min(max(y, 0), photo.height - SIDE)
        yield "text", photo.crop((x, y, x + SIDE, y + SIDE))
    wanted = len(words[:MOST_OF_A_PHOTO])
    for _ in range(200):
        if wanted == 0:
            return
        x, y = rng.randint(0, photo.width - SIDE), rng.randint(0, photo.height - SIDE)
        if all(b[2] < x or b[0] > x + SIDE or b[3] < y or b[1] > y + SIDE for b in boxes):
            yield "none", photo.crop((x, y, x + SIDE, y + SIDE))
            wanted -= 1


def cut(archive, out, rng):
    count = {"text": 0, "none": 0}
    for kind in count:
        os.makedirs(os.path.join(out, kind), exist_ok=True)
    with zipfile.ZipFile(archive) as packed:
        for name in sorted(n for n in packed.namelist() if n.endswith(".jpg")):
            labels = name.replace("_images/", "_gts/gt_").replace(".jpg", ".txt")
            photo = Image.open(io.BytesIO(packed.read(name))).convert("RGB")
            for kind, patch in patches_of(photo, boxes_of(packed.read(labels).decode("utf-8-sig")), rng):
                patch.save(os.path.join(out, kind, f"{count[kind]:05}.jpg"), quality=90)
                count[kind] += 1
    print(f"{out}: {count['text']} with text, {count['none']} without")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rng = random.Random(1)
    for archive, part in [("train.zip", "train"), ("test.zip", "val")]:
        cut(os.path.join(sys.argv[1], "ocr_det", archive), os.path.join(sys.argv[2], part), rng)


if __name__ == "__main__":
    main()
