#!/usr/bin/env python3
"""Measures the same work of two programs in turns and prints a row of a table.

usage: speed.py NAME THREADS COUNT ROUNDS OURS [ARGUMENT ...] -- THEIRS [ARGUMENT ...]

The programs are `bench_mindspore` and peer.py with `step` or `pipeline`. Both live through all
rounds, on the first THREADS of this process's cores; only one works at a time. A round is COUNT
steps or batches of each; the first round, in which MindSpore compiles, does not count. The row has
the medians of images a second and the ratio.
"""
import os
import signal
import statistics
import subprocess
import sys

ANSWER = "images/s "
SECONDS = 1200  # for a round of one program


class Program:
    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.speeds = []

    def work(self, count):
        signal.alarm(SECONDS)
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                signal.alarm(0)
                self.speeds.append(float(line[len(ANSWER):]))
                return
        sys.exit(f"speed.py: error: {' '.join(self.command)} ended with {self.process.wait()}")

    def median(self):
        return statistics.median(self.speeds[1:])


def give_up(_signal, _frame):
    sys.exit(f"speed.py: error: no answer within {SECONDS} s")


def measure(programs, count, rounds):
    for turn in range(rounds + 1):
        for program in programs if turn % 2 else programs[::-1]:
            program.work(count)


def main():
    if len(sys.argv) < 8 or "--" not in sys.argv:
        print(__doc__, file=sys.stderr)
        return 2
    name, threads, count, rounds = sys.argv[1], *map(int, sys.argv[2:5])
    cut = sys.argv.index("--")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["OMP_NUM_THREADS"] = str(threads)
    signal.signal(signal.SIGALRM, give_up)
    programs = [Program(sys.argv[5:cut]), Program(sys.argv[cut + 1:])]
    try:
        measure(programs, count, rounds)
    finally:
        for program in programs:
            program.process.kill()
            program.process.wait()
    ours, theirs = (program.median() for program in programs)
    print(f"| {name} | {threads} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
