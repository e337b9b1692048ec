#!/usr/bin/env python3
"""Compares the outputs of Lockstep with those of MindSpore; compare.sh calls it.

usage: compare.py first NAME OURS THEIRS EXACT [LIMIT]   folders with log.txt and gradients.safetensors
       compare.py scores OURS.log THEIRS.log               the last "Performance: {...}" of each
       compare.py ranks OURS THEIRS                        folders of msrun's logs: calls of a group
       compare.py two OURS THEIRS                          the same: losses of two ranks
       compare.py curves NAME OURS THEIRS NOISY            folders with log.txt: losses over the steps
       compare.py disturb WEIGHTS.safetensors OUT.safetensors   the weights of NOISY

first prints the first losses, their relative difference, and the median and largest relative
difference of a parameter's gradient, |a - b| / |b| as vectors. EXACT is the same batch in float64, of
`bench_mindspore train64` or float64.py, and the median distances of both sides to it follow. A bias
before a batch norm has no influence: its gradient is zero in float64, and nothing but rounding in
float32. Its differences are taken relative to the gradient of the same layer's weight.

curves prints the mean difference of the losses, relative to MindSpore's mean loss. NOISY is another
run of Lockstep, whose weights began one unit in the last place up or down or unchanged, each by chance: what
rounding alone does to the curve.

Ends with 1 if a floor is missed:
  first   losses within 1e-4. Gradients within 1e-3 for each parameter, or, with LIMIT, the median
          distances of both sides to float64 within that: in some fresh networks rounding alone is
          beyond 1e-3 (docs/compatibility.md)
  scores  equal but for 1e-6: MindOCR adds up edit distances in float32. At least one is not zero
  ranks   equal results
  two     first losses of each rank within 1e-4
  curves  first losses within 1e-4; the mean difference within 1e-3, or within three times that of
          Lockstep to NOISY
"""
import ast
import glob
import re
import statistics
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

LOSS_LIMIT, GRADIENT_LIMIT, ZERO, SCORE_LIMIT = 1e-4, 1e-3, 1e-9, 1e-6
CURVE_LIMIT, NOISES = 1e-3, 3


def losses(path):
    with open(path, encoding="utf-8") as file:
        return [float(line.split()[2]) for line in file if line.startswith("loss ")]


def relative(own, other):
    return abs(own - other) / abs(other)


def scales(gradients):
    """What a difference of each gradient is relative to: its norm in float64."""
    norms = {name: np.linalg.norm(value) for name, value in gradients.items()}
    for name, norm in norms.items():
        weight = norms.get(re.sub(r"bias$", "weight", name), norm)
        yield name, weight if norm < ZERO * weight else norm


def differences(ours, theirs, scale):
    """(relative difference, name), largest first."""
    other = (ours.keys() ^ theirs.keys()) | (ours.keys() ^ scale.keys())
    if other:
        sys.exit(f"parameters that not all have: {sorted(other)[:4]}")
    rows = []
    for name, value in theirs.items():
        difference = ours[name].astype(np.float64).reshape(value.shape) - value
        rows.append((np.linalg.norm(difference) / scale[name], name))
    return sorted(rows, reverse=True)


def median_distance(ours, theirs, scale):
    return statistics.median(distance for distance, _ in differences(ours, theirs, scale))


def first(name, own, other, exact, limit=None):
    ours, theirs = losses(f"{own}/log.txt"), losses(f"{other}/log.txt")
    difference = relative(ours[0], theirs[0])
    *sides, truth = (load_file(f"{folder}/gradients.safetensors")
                     for folder in (own, other, exact))
    scale = dict(scales(truth))
    between = differences(*sides, scale)
    worst, parameter = between[0]
    beyond = sum(not distance <= GRADIENT_LIMIT for distance, _ in between)  # also no number
    print(f"{name}: losses {ours[0]:.7g} {theirs[0]:.7g}, difference {difference:.1e}; gradients: "
          f"median {median_distance(*sides, scale):.1e}, largest {worst:.1e} ({parameter}), "
          f"{beyond} of {len(between)} beyond {GRADIENT_LIMIT:g}")
    distances = [median_distance(side, truth, scale) for side in sides]
    print(f"{name}: median distance to float64: {distances[0]:.1e} {distances[1]:.1e}")
    near = limit is not None and all(distance <= float(limit) for distance in distances)
    return not (difference <= LOSS_LIMIT and (beyond == 0 or near))


def performance(path):
    with open(path, encoding="utf-8") as file:
        found = re.findall(r"Performance: (\{.*?\})", file.read())
    if not found:
        sys.exit(f"{path}: no line with scores")
    return ast.literal_eval(found[-1])


def scores(own, other):
    ours, theirs = performance(own), performance(other)
    wrong = [name for name in theirs if abs(ours[name] - theirs[name]) > SCORE_LIMIT]
    for name in wrong:
        print(f"{name} differs: {ours[name]} {theirs[name]}")
    if not any(theirs.values()):
        print("all scores are zero, which shows nothing")
    return bool(wrong) or not any(theirs.values())


def worker_lines(folder, pattern):
    """The matches in the log of each worker."""
    logs = sorted(glob.glob(f"{folder}/worker_*.log"))
    found = []
    for path in logs:
        with open(path, encoding="utf-8", errors="replace") as file:
            found.append(re.findall(pattern, file.read(), re.MULTILINE))
    if len(found) != 2 or not all(found):
        sys.exit(f"{folder}: lines of 2 workers are expected, not of {len(found)}")
    return found


def ranks(own, other):
    """The programs make the same calls in the same order."""
    wrong = 0
    pattern = r"^(\d)\|(.*)\|(.*)$"
    ours, theirs = (sorted(worker_lines(folder, pattern)) for folder in (own, other))
    for mine, yours in zip(ours, theirs):
        if len(mine) != len(yours):
            sys.exit(f"{len(mine)} calls and {len(yours)}")
        for (rank, call, result), (other_rank, peer_call, peer_result) in zip(mine, yours):
            made = peer_result == "None"  # a group was made or destroyed
            same = rank == other_rank and (made or result == peer_result)
            wrong += not same
            print(f"rank {rank}  {call} = {result}  {peer_call} = {peer_result}" +
                  ("" if same else "  DIFFERS"))
    return wrong > 0


def two(own, other):
    pattern = r"^loss (\d+) (\S+)$"
    ours, theirs = (worker_lines(folder, pattern) for folder in (own, other))
    # msrun numbers its logs before it knows the ranks: the losses are compared as sets.
    fails = False
    for step in range(len(theirs[0])):
        mine, yours = (sorted(float(lines[step][1]) for lines in side) for side in (ours, theirs))
        difference = max(map(relative, mine, yours))
        print(f"step {step}: {mine} {yours}, difference {difference:.1e}")
        fails |= step == 0 and not difference <= LOSS_LIMIT
    return fails


def curves(name, own, other, noisy):
    ours, theirs, twin = (losses(f"{folder}/log.txt") for folder in (own, other, noisy))
    if not len(ours) == len(theirs) == len(twin):
        sys.exit(f"{name}: {len(ours)}, {len(theirs)} and {len(twin)} steps")
    scale = statistics.mean(theirs)
    difference, noise = (statistics.mean(abs(a - b) for a, b in zip(ours, side)) / scale
                         for side in (theirs, twin))
    print(f"{name}, {len(theirs)} steps: first losses {ours[0]:.6g} {theirs[0]:.6g}, last "
          f"{ours[-1]:.6g} {theirs[-1]:.6g}, means {statistics.mean(ours):.6g} {scale:.6g}; mean "
          f"difference {difference:.1e}, of rounding alone {noise:.1e}")
    return not (relative(ours[0], theirs[0]) <= LOSS_LIMIT and
                difference <= max(CURVE_LIMIT, NOISES * noise))


def disturb(path, out):
    """Every weight moves to the next float32 above or below, or not at all."""
    chance = np.random.default_rng(1)
    tensors = {}
    for name, value in sorted(load_file(path).items()):
        target = value + chance.integers(-1, 2, value.shape).astype(value.dtype)
        tensors[name] = np.nextafter(value, target)
    save_file(tensors, out)
    return False


def main():
    commands = {command.__name__: command
                for command in (first, scores, ranks, two, curves, disturb)}
    if len(sys.argv) < 4 or sys.argv[1] not in commands:
        print(__doc__, file=sys.stderr)
        return 2
    return int(commands[sys.argv[1]](*sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
