#!/usr/bin/env python3
"""Compares the outputs of `bench_mindspore train` and `peer.py train`.

usage: compare.py NAME LOCKSTEP_DIR MINDSPORE_DIR [FLOAT64_DIR]
       each with gradients.safetensors, the first two with log.txt

Prints one line: the first losses, their relative difference, and the median and largest relative
difference of a parameter's gradient, |a - b| / |b| as vectors. A gradient that is zero but for
rounding (a bias before a batch norm) is compared with a millionth of the largest. With FLOAT64_DIR,
of `bench_mindspore train64` or float64.py, two more medians: the distance of each side to that
gradient. They explain a difference and excuse none.

Ends with 1 if the losses differ by more than 1e-4, or the gradient of any parameter by more than
1e-3, and names that parameter.
"""
import statistics
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


def median_difference(ours, theirs):
    return statistics.median(difference for difference, _ in gradient_differences(ours, theirs))


def main():
    name, own, other, *exact = sys.argv[1:]
    ours, theirs = losses(own), losses(other)
    relative = abs(ours[0] - theirs[0]) / abs(theirs[0])
    folders = [own, other] + exact
    gradients = [load_file(f"{folder}/gradients.safetensors") for folder in folders]
    differences = gradient_differences(*gradients[:2])
    median = median_difference(*gradients[:2])
    distances = [median_difference(side, gradients[2]) for side in gradients[:2]] if exact else []
    last = min(len(ours), len(theirs)) - 1
    print(f"{name:<16}{ours[0]:>11.6f}{theirs[0]:>11.6f}{relative:>9.1e}{len(differences):>5}"
          f"{median:>9.1e}{differences[0][0]:>9.1e}" + "".join(f"{d:>9.1e}" for d in distances) +
          f"{last + 1:>5}{ours[last]:>9.4f}{theirs[last]:>9.4f}")
    worst, parameter = differences[0]
    if worst > GRADIENT_LIMIT:
        print(f"{name}: the gradient of {parameter} differs by {worst:.1e}", file=sys.stderr)
    return int(relative > LOSS_LIMIT or worst > GRADIENT_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
