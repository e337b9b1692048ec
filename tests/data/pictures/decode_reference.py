#!/usr/bin/env python3
"""Writes decode_expected.h: what Pillow decodes from files of a drawn picture. Needs Pillow, which
the tests do not.

usage: decode_reference.py >decode_expected.h
"""
import hashlib
import io

import numpy as np
import PIL
from PIL import Image

QUALITY = 80
# As jpeg_kinds() of encode_jpeg.h: name, mode, arguments.
JPEG_KINDS = [
    ("4:4:4", "RGB", {"subsampling": 0}),
    ("4:2:2", "RGB", {"subsampling": 1}),
    ("4:2:0", "RGB", {"subsampling": 2}),
    ("4:2:0 progressive", "RGB", {"subsampling": 2, "progressive": True}),
    ("grey", "L", {}),
    ("four inks", "CMYK", {}),
]


def digest(values):
    """The first 64 bits of SHA-256 of the bytes."""
    return int(hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16], 16)


def encoded(picture, **arguments):
    file = io.BytesIO()
    picture.save(file, **arguments)
    return file.getvalue()


def decoded(data):
    """As torchvision's ImageFolder reads a picture."""
    return Image.open(io.BytesIO(data)).convert("RGB")


def decoded_jpegs(picture):
    for name, mode, arguments in JPEG_KINDS:
        data = encoded(picture.convert(mode), format="JPEG", quality=QUALITY, **arguments)
        yield name, decoded(data)


def textured(width, height):
    """textured_picture() of drawn.h."""
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    wave = np.abs((x * (3 + c) + y * 2) % 256 - 128)
    return Image.fromarray((wave + (x * y * 7 + x * 13 + y * 29) % 32 + c * 30).astype(np.uint8))


def main():
    picture = textured(53, 38)
    print(f"""#pragma once
// Made by decode_reference.py with Pillow {PIL.__version__}, from textured_picture(53, 38).

#include <cstdint>

namespace lockstep::inline internal {{

struct ExpectedJpeg {{
  const char* kind;  ///< Of jpeg_kinds().
  uint64_t digest;   ///< Of the decoded pixels: 64 bits of SHA-256.
}};

// clang-format off
inline constexpr ExpectedJpeg kExpectedJpegs[] = {{""")
    for name, pixels in decoded_jpegs(picture):
        print(f'    {{"{name}", {digest(pixels):#x}}},')
    webp = encoded(picture, format="WEBP", quality=60)
    print(f"""}};

inline constexpr uint64_t kExpectedLossyWebp = {digest(decoded(webp)):#x};
inline constexpr uint8_t kLossyWebp[] = {{""")
    for at in range(0, len(webp), 19):
        print("    " + " ".join(f"{byte:3}," for byte in webp[at : at + 19]))
    print("""};
// clang-format on

}  // namespace lockstep::inline internal""")


if __name__ == "__main__":
    main()
