#!/usr/bin/python3
"""Compares two builds of Lockstep in turns, so that noise affects both alike.

usage: bench/compare_builds.py BEFORE AFTER [--rounds 7] [--bound 3] [--only REGEX]
  BEFORE, AFTER  build folders, such as build/release, with the programs of bench/
  --bound        allowed slowdown in per cent
  --only         only measures with matching names

Prints a line for each measure: the medians over the rounds, and the ratios of medians and of minima.
The programs of both are copied side by side first: starting one takes longer on some file systems.
A measure is slower if both ratios exceed the bound: a short disturbance of the machine changes only
one of them. Exit code 1 if one is slower. Needs an idle machine.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile


def copied(bin, folder):
    """The measured programs of `bin`, in `folder`."""
    os.mkdir(folder)
    for program in {"lockstep", *(program for program, _ in MEASURES.values())}:
        path = os.path.join(bin, program)
        if os.access(path, os.X_OK):
            shutil.copy(path, folder)
    return folder


def run(command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **variables})
    if done.returncode != 0:
        sys.exit(f"compare_builds: {' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def rows(command):
    """The rows that `command --json FILE` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        run([*command, "--json", path])
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def collectives(bin, op, sizes):
    command = [f"{bin}/lockstep-bench-collectives", "--op", op, "--ranks", "2", "--sizes", sizes, "--seconds", "0.3"]
    return {f"{op} {row['bytes']} B (us)": row["p50_us"] for row in rows(command)}


def ddp(bin, model):
    command = [f"{bin}/lockstep-bench-ddp", "--model", model, "--mode", "ddp"]
    return {f"ddp {model} (ms)": rows(command)[0]["step_ms_p50"]}


def launch(bin):
    line = re.search(r"^lockstep run +(\d+) +(\d+)", run([f"{bin}/bench_launch", "--rounds", "40"]), re.M)
    return {"launch of 2 (us)": float(line[2])}


def restart(bin):
    command = [f"{bin}/lockstep", "run", "--nproc_per_node", "2", "--max_restarts", "1", "--", f"{bin}/restart_worker"]
    at = dict(re.findall(r"(killed|stepped) (\d+)", run(command, OMP_NUM_THREADS="1")))
    return {"kill to next step (ms)": (int(at["stepped"]) - int(at["killed"])) / 1000}


def store(bin):
    text = run([f"{bin}/bench_store", "0.3", "2"])
    calls = re.findall(r"^(set|get|add) +1 +\S+ +(\S+)", text, re.M)
    return {f"store {call} (us)": float(p50) for call, p50 in calls}


def messages(bin):
    text = run([f"{bin}/bench_messages", "300"])
    found = re.findall(r"^send and recv of (\d+) B +(\S+) +(\S+)", text, re.M)
    return {f"message {size} B (us)": float(p50) for size, _, p50 in found}


# Name: the program, which both builds need, and its measurement.
MEASURES = {
    "all_reduce": ("lockstep-bench-collectives", lambda bin: collectives(bin, "all_reduce", "8,64K,1M,16M")),
    "barrier": ("lockstep-bench-collectives", lambda bin: collectives(bin, "barrier", "8")),
    "ddp mlp3m": ("lockstep-bench-ddp", lambda bin: ddp(bin, "mlp3m")),
    "ddp resnet50": ("lockstep-bench-ddp", lambda bin: ddp(bin, "resnet50")),
    "launch": ("bench_launch", launch),
    "restart": ("restart_worker", restart),
    "store": ("bench_store", store),
    "messages": ("bench_messages", messages),
}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bound", type=float, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        builds = (options.before, options.after)
        bins = [copied(os.path.join(build, "bin"), f"{folder}/{i}") for i, build in enumerate(builds)]
        compare(bins, options)


def compare(bins, options):
    slower = []
    print(f"{'':28}{'before':>12}{'after':>12}{'medians':>10}{'minima':>10}")
    for name, (program, measure) in MEASURES.items():
        if not re.search(options.only, name):
            continue
        without = [bin for bin in bins if not os.access(os.path.join(bin, program), os.X_OK)]
        if without:
            print(f"{name:28}left out: no {program} in {['BEFORE', 'AFTER'][bins.index(without[0])]}")
            continue
        times = {}  # by measure: of before, of after
        for turn in range(2 * options.rounds):
            which = (turn + turn // 2) % 2  # each build goes first in every second round
            for what, value in measure(bins[which]).items():
                times.setdefault(what, ([], []))[which].append(value)
        for what, (before, after) in times.items():
            middle = statistics.median(after) / statistics.median(before)
            least = min(after) / min(before)
            is_slower = min(middle, least) > 1 + options.bound / 100
            slower += [what] if is_slower else []
            print(
                f"{what:28}{statistics.median(before):12.4g}{statistics.median(after):12.4g}"
                f"{middle:10.3f}{least:10.3f}{'  slower' if is_slower else ''}",
                flush=True,
            )
    if slower:
        sys.exit(f"compare_builds: slower by more than {options.bound:g} %: {', '.join(slower)}")


if __name__ == "__main__":
    main()
