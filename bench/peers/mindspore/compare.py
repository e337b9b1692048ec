#!/usr/bin/env python3
"""Compares the outputs of `bench_mindspore train` and `peer.py train`.

usage: compare.py NAME LOCKSTEP_DIR MINDSPORE_DIR     each with gradients.safetensors and log.txt

Prints one line: the first losses, their relative difference, and the largest relative difference
of a parameter's gradient, |a - b| / |b| as vectors. A gradient that is zero but for rounding (a
bias before a batch norm) is compared with the largest of all, not with itself. Ends with 1 if the
losses differ by more than 1e-4 or a gradient by more than 1e-3.
"""
import sys

import numpy as np
from safetensors.numpy import load_file

LOSS_LIMIT, GRADIENT_LIMIT, ROUNDING = 1e-4, 1e-3, 1e-6


def losses(folder):
    with open(f"{folder}/log.txt", encoding="utf-8") as file:
        return [float(line.split()[2]) for line in file if line.startswith("loss ")]


def gradient_differences(ours, theirs):
    """(relative difference, name), largest first."""
    if ours.keys() != theirs.keys():
        sys.exit(f"other parameters: {sorted(ours.keys() ^ theirs.keys())[:4]}")
    norms = {name: np.linalg.norm(value.astype(np.float64)) for name, value in theirs.items()}
    floor = ROUNDING * max(norms.values())
    rows = []
    for name, value in theirs.items():
        difference = ours[name].astype(np.float64).reshape(value.shape) - value
        rows.append((np.linalg.norm(difference) / max(norms[name], floor), name))
    return sorted(rows, reverse=True)


def main():
    name, own, other = sys.argv[1:4]
    ours, theirs = losses(own), losses(other)
    relative = abs(ours[0] - theirs[0]) / abs(theirs[0])
    rows = gradient_differences(load_file(f"{own}/gradients.safetensors"),
                                load_file(f"{other}/gradients.safetensors"))
    last = min(len(ours), len(theirs)) - 1
    print(f"{name:<14}{ours[0]:>12.6f}{theirs[0]:>12.6f}{relative:>10.1e}{len(rows):>6}"
          f"{rows[0][0]:>10.1e}  {rows[0][1]:<34}{last + 1:>5}{ours[last]:>10.4f}{theirs[last]:>10.4f}")
    return int(relative > LOSS_LIMIT or rows[0][0] > GRADIENT_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
