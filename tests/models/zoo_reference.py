"""Writes zoo_expected.txt: what torchvision's networks have and compute, for zoo_test.cpp.

By hand, where torchvision is installed:
    python tests/models/zoo_reference.py >tests/models/zoo_expected.txt
Weights and pictures follow the formula of zoo_fill.h, bit for bit.
"""
import math

import numpy
import torch
import torchvision
from torchvision.models import vision_transformer

NAMES = ["resnet18", "resnet34", "resnet50", "resnet101", "resnext50_32x4d", "wide_resnet50_2",
         "mobilenet_v3_large", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "vit_b_16", "vit_s_16"]
SIDE = 64  # of the pictures, so that a test takes a second


def build(name, classes=1000, side=224):
    """torchvision's network; the small ViT has the width of timm's."""
    if name == "vit_s_16":
        return vision_transformer.VisionTransformer(side, 16, 12, 6, 384, 1536, num_classes=classes)
    more = {"image_size": side} if name.startswith("vit") else {}
    return torchvision.models.get_model(name, weights=None, num_classes=classes, **more)


def name_hash(text):
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


def noise(name, shape, base, factor):
    count = math.prod(shape)
    place = numpy.arange(count, dtype=numpy.uint32) + numpy.uint32(name_hash(name))
    place ^= place >> 16
    place *= numpy.uint32(0x7FEB352D)
    place ^= place >> 15
    place *= numpy.uint32(0x846CA68B)
    place ^= place >> 16
    values = base + factor * ((place >> 8).astype(numpy.float64) / 8388608.0 - 1)
    return torch.from_numpy(values.astype(numpy.float32)).reshape(shape)


def formula(name, value):
    last = name.split(".")[-1]
    shape = list(value.shape)
    if last == "num_batches_tracked":
        return value
    if last == "running_var" and name.startswith("features."):
        return noise(name, shape, 0.8, 0.2)
    if last == "running_var":
        return noise(name, shape, 1.5, 0.5)
    if last == "layer_scale":
        return noise(name, shape, 0.5, 0.25)
    if last in ("pos_embedding", "class_token"):
        return noise(name, shape, 0, 1)
    if last.endswith("weight") and value.numel() == shape[0]:
        return noise(name, shape, 1, 0.25)
    if not last.endswith("weight"):
        return noise(name, shape, 0, 0.1)
    return noise(name, shape, 0, math.sqrt(6 / (value.numel() // shape[0])))


def main():
    print(f"# torchvision {torchvision.__version__}, torch {torch.__version__}. Name, parameters, tensors, hash of the")
    print("# names and shapes, side of the pictures, scores of the first four classes for two pictures.")
    for name in NAMES:
        full = build(name)
        state = full.state_dict()
        listing = "".join(f"{key} {'x'.join(map(str, state[key].shape))}\n" for key in sorted(state))
        net = build(name, side=SIDE).eval()
        net.load_state_dict({key: formula(key, value) for key, value in net.state_dict().items()})
        with torch.no_grad():
            scores = net(noise("pictures", [2, 3, SIDE, SIDE], 0, 1))[:, :4].flatten().tolist()
        print(name, sum(p.numel() for p in full.parameters()), len(state), name_hash(listing), SIDE,
              *(f"{score:.9g}" for score in scores))


if __name__ == "__main__":
    main()
