#!/usr/bin/env python3
"""Draws the losses of both programs over the steps, a column for each network.

usage: curves.py PICTURE.svg (TITLE OURS THEIRS NOISY)...   folders with log.txt, see compare.py
"""
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

from compare import losses

LOCKSTEP, MINDSPORE, NOISE = "#2060a0", "#f0a060", "#909090"
SMALLEST = 1e-9  # equal losses on a logarithmic axis


def draw(above, below, title, own, other, noisy):
    ours, theirs, twin = (losses(f"{folder}/log.txt") for folder in (own, other, noisy))
    above.plot(theirs, label="MindSpore", linewidth=3, color=MINDSPORE)
    above.plot(ours, label="Lockstep", linewidth=1, color=LOCKSTEP)
    above.set_title(title)
    for side, name, color in ((theirs, "MindSpore", MINDSPORE),
                              (twin, "Lockstep, weights one\nunit off", NOISE)):
        apart = [max(abs(a - b) / abs(b), SMALLEST) for a, b in zip(ours, side)]
        below.semilogy(apart, label=f"to {name}", linewidth=1, color=color)
    below.set_xlabel("step")
    for axes in (above, below):
        axes.grid(alpha=0.3)


def main():
    picture, *words = sys.argv[1:]
    networks = [words[i:i + 4] for i in range(0, len(words), 4)]
    # Equal data give equal bytes; text stays text, which is small.
    matplotlib.rcParams.update({"svg.hashsalt": "curves", "svg.fonttype": "none", "font.size": 9})
    figure, axes = pyplot.subplots(2, len(networks), sharex=True, squeeze=False,
                                   figsize=(3.4 * len(networks), 5), layout="constrained")
    for (above, below), network in zip(axes.T, networks):
        draw(above, below, *network)
    axes[0][0].set_ylabel("loss")
    axes[1][0].set_ylabel("relative difference of Lockstep")
    axes[0][0].legend()
    axes[1][0].legend()
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
