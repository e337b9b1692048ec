#!/usr/bin/env python3
"""Draws the losses of both programs over the steps.

usage: curves.py PICTURE.svg TITLE LOCKSTEP_LOG MINDSPORE_LOG   logs of "loss STEP VALUE"
"""
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot


def losses(path):
    with open(path, encoding="utf-8") as file:
        return [float(line.split()[2]) for line in file if line.startswith("loss ")]


def main():
    picture, title, *logs = sys.argv[1:]
    ours, theirs = map(losses, logs)
    matplotlib.rcParams["svg.hashsalt"] = title  # equal data, equal bytes
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 6))
    above.plot(theirs, label="MindSpore", linewidth=3, color="#f0a060")
    above.plot(ours, label="Lockstep", linewidth=1, color="#2060a0")
    above.set_ylabel("loss")
    above.set_title(title)
    above.legend()
    below.semilogy([max(abs(a - b) / b, 1e-9) for a, b in zip(ours, theirs)], color="#606060")
    below.set_ylabel("relative difference")
    below.set_xlabel("step")
    for axes in (above, below):
        axes.grid(alpha=0.3)
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
