#!/usr/bin/env python3
"""Writes photo_expected.h: digests and means of what Pillow and torchvision make of photographs.
Needs torchvision and Pillow, which the tests do not. Pillow 12.0 and 13.0 give the same. The
photographs are members of $LOCKSTEP_TEST_DATA/ocr_det/train.zip.

usage: photo_reference.py >photo_expected.h
"""
import os
import zipfile

import numpy as np
import PIL
import torch
import torchvision
from decode_reference import decoded, decoded_jpegs, digest, encoded
from PIL import Image
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms import functional as F
from torchvision.transforms import transforms as T
from torchvision.transforms.autoaugment import RandAugment, TrivialAugmentWide, _apply_op

PHOTOS = ["img_1", "img_21", "img_93"]
PART = (101, 57, 613, 407)  # left, top, width, height: odd sizes, and no whole blocks
SIZE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FILL = (0.5, -1.0, 2.0)

# What photo i draws with the seed 7 in epoch 1; the test checks that Lockstep draws this.
CROPS = [(467, 49, 537, 629), (440, 273, 356, 398), (503, 98, 592, 539)]
ERASED = [(94, 33, 48, 76), (57, 48, 165, 86), (1, 90, 112, 101)]
ORDERS = [(3, 2, 0, 1), (0, 1, 2, 3), (0, 2, 3, 1)]  # of brightness, contrast, saturation, hue
SHARES = [float(np.float32(s)) for s in (0.5552709629257625, 0.8876822557219812, 0.355094487692992)]
CUTS = [(78, 104, 146, 120), (132, 130, 92, 94), (0, 0, 109, 113)]

KINDS = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness",
         "Color", "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast",
         "Equalize"]  # fmt: skip
JITTER = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]
FACTORS = [(0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.2)]


def photo(name):
    archive = os.path.join(os.environ["LOCKSTEP_TEST_DATA"], "ocr_det", "train.zip")
    with zipfile.ZipFile(archive) as members:
        return decoded(members.read(f"train_images/{name}.jpg"))


def part_of(picture):
    left, top, width, height = PART
    return F.crop(picture, top, left, height, width)


def evaluation(picture):
    return T.CenterCrop(SIZE)(T.Resize(256)(picture))


def decodings(picture):
    part = part_of(picture)
    yield "file", picture
    yield "png", decoded(encoded(part, format="PNG"))
    yield "webp", decoded(encoded(part, format="WEBP", lossless=True))
    for kind, pixels in decoded_jpegs(part):
        yield kind, pixels


def sizes(i, picture):
    left, top, width, height = CROPS[i]
    yield "evaluation", evaluation(picture)
    yield "center crop with border", T.CenterCrop(800)(picture)
    yield "random resized crop", F.resized_crop(picture, top, left, height, width, [SIZE, SIZE])
    yield "enlarged", T.Resize((500, 700))(part_of(picture))
    yield "left and right", F.hflip(part_of(picture))
    yield "top and bottom", F.vflip(part_of(picture))


def colours(i, picture):
    small = evaluation(picture)
    for kind, change in enumerate(JITTER):
        for which, factor in enumerate(FACTORS[kind]):
            yield f"{kind} {which}", change(small, factor)
    for kind in ORDERS[i]:
        small = JITTER[kind](small, FACTORS[kind][1])
    yield "all", small


def strengths(table, name):
    if table == 0:
        values, signed = RandAugment()._augmentation_space(31, (SIZE, SIZE))[name]
        return values[9] if values.ndim else None, signed
    values, signed = TrivialAugmentWide()._augmentation_space(31)[name]
    return values[30] if values.ndim else None, signed


def augmented(picture):
    small = evaluation(picture)
    for table in 0, 1:
        for kind, name in enumerate(KINDS):
            value, signed = strengths(table, name)
            for sign in [1, -1] if signed else [1]:
                strength = sign * float(value or 0)
                out = _apply_op(small, name, strength, InterpolationMode.NEAREST, None)
                yield f"{table} {kind} {sign}", out


def normalized(picture):
    return F.normalize(F.to_tensor(evaluation(picture)), MEAN, STD)


def floats(i, pictures):
    own, other = normalized(pictures[i]), normalized(pictures[(i + 1) % len(pictures)])
    left, top, width, height = ERASED[i]
    yield "normalized", own
    fill = torch.tensor(FILL)[:, None, None]
    yield "erased", F.erase(own, top, left, height, width, fill)
    batch = torch.stack([other, own])  # torchvision mixes with the one before
    mixed = v2.MixUp(num_classes=2)
    yield "mixed", mixed.transform(batch, {"labels": None, "batch_size": 2, "lam": SHARES[i]})[1]
    left, top, width, height = CUTS[i]
    box = (left, top, left + width, top + height)
    cut = v2.CutMix(num_classes=2)
    yield "cut", cut.transform(batch, {"labels": None, "batch_size": 2, "box": box})[1]


def rows():
    pictures = [photo(name) for name in PHOTOS]
    for i, picture in enumerate(pictures):
        for group, results in [
            ("decode", decodings(picture)),
            ("size", sizes(i, picture)),
            ("colour", colours(i, picture)),
            ("augment", augmented(picture)),
            ("floats", floats(i, pictures)),
        ]:
            for name, result in results:
                yield i, group, name, np.asarray(result)


def boxes(name, values):
    print(f"inline constexpr PhotoBox {name}[] = {{")
    print(",\n".join("    {%d, %d, %d, %d}" % box for box in values) + "};")


def main():
    print(f"""#pragma once
// Made by photo_reference.py with torchvision {torchvision.__version__}, torch {torch.__version__}
// and Pillow {PIL.__version__}.

#include <cstdint>

namespace lockstep::inline internal {{

struct PhotoBox {{
  int left, top, width, height;
}};
struct ExpectedPhoto {{
  int photo;  ///< Of kPhotos.
  const char* group;
  const char* name;
  uint64_t digest;  ///< Of bytes or floats: 64 bits of SHA-256.
  double mean;      ///< Of all of them.
}};

// clang-format off
inline constexpr const char* kPhotos[] = {{{", ".join(f'"{name}"' for name in PHOTOS)}}};
inline constexpr float kPhotoShares[] = {{{", ".join(f"{share!r}F" for share in SHARES)}}};""")
    boxes("kPhotoPart", [PART])
    boxes("kPhotoCrops", CROPS)
    boxes("kPhotoErased", ERASED)
    boxes("kPhotoCuts", CUTS)
    print("inline constexpr ExpectedPhoto kExpectedPhotos[] = {")
    for i, group, name, values in rows():
        mean = float(values.astype(np.float64).mean())
        print(f'    {{{i}, "{group}", "{name}", {digest(values):#x}, {mean:.6f}}},')
    print("""};
// clang-format on

}  // namespace lockstep::inline internal""")


if __name__ == "__main__":
    main()
