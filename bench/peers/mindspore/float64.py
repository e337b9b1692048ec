#!/usr/bin/env python3
"""A third opinion in float64: loss and gradients of a batch, in PyTorch, without Lockstep.

usage: float64.py exact|float32-maps|noise CONFIG WEIGHTS.safetensors BATCH.safetensors OUT

Computes MindCV's ResNet-50 or MindOCR's DBNet with ResNet-18 in training mode, from their papers and
the names in WEIGHTS (peer.py init writes both forms). Writes OUT/gradients.safetensors and
OUT/log.txt as `bench_mindspore train64` does.

  exact         all in float64
  float32-maps  DBNet: the sigmoids of its two branches give float32, all else is float64. Above a
                logit of 17 such a sigmoid is 1: see docs/compatibility.md.
  noise         as float32-maps, and each weight and pixel is wrong by up to half a unit in the last
                place of a float32. A program in float32 cannot be expected to be nearer than that.
"""
import json
import os
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F
import yaml

DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32, "U8": np.uint8}


def load(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        body = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            array = np.frombuffer(body[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = torch.from_numpy(array.copy())
    return tensors


def save(path, tensors):
    header, body = {}, b""
    for name, tensor in tensors.items():
        content = tensor.detach().numpy().tobytes()
        header[name] = {"dtype": "F64", "shape": list(tensor.shape),
                        "data_offsets": [len(body), len(body) + len(content)]}
        body += content
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


class Float32Sigmoid(torch.autograd.Function):
    """What a float32 sigmoid gives, forward and backward, for a float64 input."""

    @staticmethod
    def forward(ctx, x):
        p = torch.sigmoid(x.float())
        ctx.save_for_backward(p)
        return p.double()

    @staticmethod
    def backward(ctx, gradient):
        (p,) = ctx.saved_tensors
        return gradient * (p * (1 - p)).double()


def same_pool(x):
    """3x3 of stride 2; an odd element of the padding goes behind."""
    pads = []
    for size in (x.shape[3], x.shape[2]):
        total = max((-(-size // 2) - 1) * 2 + 3 - size, 0)
        pads += [total // 2, total - total // 2]
    return F.max_pool2d(F.pad(x, pads, value=-float("inf")), 3, 2)


class Network:
    def __init__(self, weights):
        self.w = weights

    def conv(self, x, name, stride=1):
        w = self.w[name + ".weight"]
        return F.conv2d(x, w, self.w.get(name + ".bias"), stride, w.shape[2] // 2)

    def norm(self, x, name):
        return F.batch_norm(x, None, None, self.w[name + ".gamma"], self.w[name + ".beta"],
                            training=True, eps=1e-5)

    def block(self, x, name, stride):
        bottleneck = f"{name}.conv3.weight" in self.w
        strides = (1, stride, 1) if bottleneck else (stride, 1)
        y = x
        for i, own in enumerate(strides, 1):
            y = self.norm(self.conv(y, f"{name}.conv{i}", own), f"{name}.bn{i}")
            y = F.relu(y) if i < len(strides) else y
        if f"{name}.down_sample.0.weight" in self.w:
            x = self.norm(self.conv(x, f"{name}.down_sample.0", stride), f"{name}.down_sample.1")
        return F.relu(x + y)

    def resnet(self, x, prefix=""):
        """The outputs of the four stages."""
        x = same_pool(F.relu(self.norm(self.conv(x, prefix + "conv1", 2), prefix + "bn1")))
        maps = []
        for stage in range(1, 5):
            i = 0
            while f"{prefix}layer{stage}.{i}.conv1.weight" in self.w:
                x = self.block(x, f"{prefix}layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1)
                i += 1
            maps.append(x)
        return maps

    def classify(self, x):
        features = self.resnet(x)[-1].mean((2, 3))
        return F.linear(features, self.w["classifier.weight"], self.w["classifier.bias"])

    def pyramid(self, maps):
        maps = [self.conv(x, f"neck.unify_channels.{i}") for i, x in enumerate(maps)]
        for i in (2, 1, 0):
            maps[i] = maps[i] + F.interpolate(maps[i + 1], maps[i].shape[2:])
        maps = [self.conv(x, f"neck.out.{i}") for i, x in enumerate(maps)]
        return torch.cat([F.interpolate(x, maps[0].shape[2:]) for x in maps[::-1]], 1)

    def branch(self, x, name):
        x = F.relu(self.norm(self.conv(x, name + ".0"), name + ".1"))
        for up, norm in ((3, 4), (6, None)):
            w, bias = self.w[f"{name}.{up}.weight"], self.w[f"{name}.{up}.bias"]
            x = F.conv_transpose2d(x, w, bias, 2)
            x = F.relu(self.norm(x, f"{name}.{norm}")) if norm else x
        return x[:, 0]

    def detect(self, x):
        """The logits of the binary map and of the threshold map."""
        features = self.pyramid(self.resnet(x, "backbone."))
        return self.branch(features, "head.segm"), self.branch(features, "head.thresh")


def cross_entropy(p, truth, mask):
    """Of the positives and of the hardest negatives, at most three to a positive of the image."""
    loss = -(truth * (p + 1e-12).log() + (1 - truth) * (1 - p + 1e-12).log())
    total, count, kept = 0, 0, []
    for one, g, m in zip(loss, truth, mask):
        positives, negatives = int((g * m).sum()), int(((1 - g) * m).sum())
        k = max(min(negatives, 3 * positives), 10)
        of_negatives = one * (1 - g) * m
        hard = of_negatives >= of_negatives.flatten().topk(k).values[-1]  # ties are all kept
        total = total + (one * g * m).sum() + of_negatives[hard].sum()
        count += positives + k
        kept.append(f"{int(hard.sum())} of {k}")
    print("hard negatives kept:", ", ".join(kept))
    return total / (count + 1e-6)


def detection_loss(logits, batch, sigmoid):
    truth, mask, thresh_map, thresh_mask = (batch[f"target_{i}"].double() for i in range(4))
    truth = truth[:, 0]
    binary, thresh = (sigmoid(x) for x in logits)
    print(f"binary map above 1 - 2**-25: {(torch.sigmoid(logits[0]) > 1 - 2**-25).double().mean():.3f}")
    step = torch.sigmoid(50 * binary - thresh)
    dice = 1 - 2 * (step * truth * mask).sum() / ((step * mask).sum() + (truth * mask).sum() + 1e-6)
    l1 = ((thresh - thresh_map).abs() * thresh_mask).sum() / (thresh_mask.sum() + 1e-6)
    return dice + 10 * l1 + 5 * cross_entropy(binary, truth, mask)


def disturbed(tensor, generator):
    return tensor * (1 + (torch.rand(tensor.shape, generator=generator).double() * 2 - 1) * 2**-24)


def main():
    mode, config_path, weights_path, batch_path, out = sys.argv[1:]
    with open(config_path, encoding="utf-8") as file:
        kind = yaml.safe_load(file)["model"]["type"]
    batch = load(batch_path)
    weights = {name: value.double() for name, value in load(weights_path).items()}
    image = batch["image"].double()
    if mode == "noise":
        generator = torch.Generator().manual_seed(1)
        weights = {name: disturbed(value, generator) for name, value in weights.items()}
        image = disturbed(image, generator)
    trained = {name: value.requires_grad_() for name, value in weights.items()
               if "moving_" not in name}
    network = Network(trained)
    if kind == "cls":
        loss = F.cross_entropy(network.classify(image), batch["target_0"].long())
    else:
        sigmoid = torch.sigmoid if mode == "exact" else Float32Sigmoid.apply
        loss = detection_loss(network.detect(image), batch, sigmoid)
    loss.backward()
    os.makedirs(out, exist_ok=True)
    save(f"{out}/gradients.safetensors", {name: value.grad for name, value in trained.items()})
    with open(f"{out}/log.txt", "w", encoding="utf-8") as file:
        print(f"loss 0 {loss.item():.9g}", file=file)
    print(f"loss 0 {loss.item():.9g}")


if __name__ == "__main__":
    main()
