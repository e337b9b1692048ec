#!/usr/bin/env python3
"""Writes augment_expected.h: what Pillow and torchvision make of two pictures, and torchvision's
tables of strengths. Needs torchvision and Pillow, which the tests do not.

usage: augment_reference.py >augment_expected.h
"""
import sys

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.autoaugment import RandAugment, TrivialAugmentWide, _apply_op

NAMES = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color",
         "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize"]  # fmt: skip
BINS = 31
SIZES = [(53, 37), (20, 64)]  # width, height


def drawn(width, height, seed):
    """drawn_picture() of drawn.h, with fewer values, so that histograms have gaps."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    values = (x * 37 + y * 59 + c * 83 + x * y * 7 + seed * 11) % 256
    return Image.fromarray((values // 2 + 40).astype(np.uint8))


def fnv(picture):
    value = 0xCBF29CE484222325
    for byte in np.asarray(picture).tobytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def strengths(augment, name, size):
    width, height = size
    if isinstance(augment, RandAugment):
        values, signed = augment._augmentation_space(BINS, (height, width))[name]
    else:
        values, signed = augment._augmentation_space(BINS)[name]
    return [float(v) for v in values] if values.ndim else [], signed


def rows():
    for table, augment in [("kRand", RandAugment()), ("kTrivialWide", TrivialAugmentWide())]:
        for kind, name in enumerate(NAMES):
            for picture, size in enumerate(SIZES):
                values, signed = strengths(augment, name, size)
                bins = [0, 5, 15, 16, 30] if values else [0]
                for bin_ in bins:
                    value = values[bin_] if values else 0.0
                    for sign in [1, -1] if signed else [1]:
                        out = _apply_op(drawn(*size, picture), name, value * sign,
                                        InterpolationMode.NEAREST, None)  # fmt: skip
                        yield (table, kind, picture, bin_, sign, value, fnv(out))


print(f"""#pragma once
// Made by augment_reference.py with torchvision {torchvision.__version__}, torch {torch.__version__}
// and Pillow {PIL.__version__}.

#include <cstdint>

#include "lockstep/data/pictures/augment.h"

namespace lockstep::inline internal {{

struct ExpectedAugment {{
  AugmentTable table;
  int kind;     ///< Of Augment.
  int picture;  ///< 0: 53 x 37, 1: 20 x 64.
  int bin;      ///< Of 31.
  int sign;
  double strength;
  uint64_t hash;  ///< FNV-1a of the result's bytes.
}};

// clang-format off
inline constexpr ExpectedAugment kExpectedAugments[] = {{""")
for table, kind, picture, bin_, sign, value, digest in rows():
    print(f"    {{AugmentTable::{table}, {kind}, {picture}, {bin_}, {sign}, {value!r}, {digest:#x}}},")
print("""};
// clang-format on

}  // namespace lockstep::inline internal""")
sys.stdout.flush()
