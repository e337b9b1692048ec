#!/usr/bin/env python3
"""Measures the same work of two programs in turns and prints a row of a table.

usage: speed.py NAME THREADS COUNT SECONDS ROUNDS OURS [ARGUMENT ...] -- THEIRS [ARGUMENT ...]

The programs are `bench_mindspore` and peer.py with `step` or `pipeline`. Both live through all
rounds, on the first THREADS of this process's cores; only one works at a time. A round is COUNT
steps or batches; one round of each program does not count. With SECONDS other than 0, a program
makes two single steps instead, since MindSpore compiles in the first. As many steps as then fit in
SECONDS, but at most COUNT, are its round. The row has the medians of images a second and the ratio.
"""
import os
import signal
import statistics
import subprocess
import sys
import time

ANSWER = "images/s "
PATIENCE = 300  # seconds for a round of one program
GRACE = 5  # seconds for its end, at which MindSpore ends processes of its own


class Program:
    def __init__(self, command):
        self.command = command
        self.count = 0
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.speeds = []

    def work(self, count):
        signal.alarm(PATIENCE)
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                signal.alarm(0)
                self.speeds.append(float(line[len(ANSWER):]))
                return
        sys.exit(f"speed.py: error: {' '.join(self.command)} ended with {self.process.wait()}")

    def prepare(self, count, seconds):
        """Work that does not count, and the length of the rounds that do."""
        self.count = count
        if seconds:
            self.work(1)
            begin = time.monotonic()
            self.work(1)
            self.count = max(1, min(count, int(seconds / (time.monotonic() - begin))))
        else:
            self.work(count)
        self.speeds.clear()

    def median(self):
        return statistics.median(self.speeds)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def give_up(_signal, _frame):
    sys.exit(f"speed.py: error: no answer within {PATIENCE} s")


def main():
    if len(sys.argv) < 9 or "--" not in sys.argv:
        print(__doc__, file=sys.stderr)
        return 2
    name, threads, count, seconds, rounds = sys.argv[1], *map(int, sys.argv[2:6])
    cut = sys.argv.index("--")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["OMP_NUM_THREADS"] = str(threads)
    signal.signal(signal.SIGALRM, give_up)
    programs = []
    try:
        for command in sys.argv[6:cut], sys.argv[cut + 1:]:
            programs.append(Program(command))
            programs[-1].prepare(count, seconds)
        for turn in range(rounds):
            for program in programs if turn % 2 else programs[::-1]:
                program.work(program.count)
    finally:
        for program in programs:
            program.end()
    ours, theirs = (program.median() for program in programs)
    print(f"| {name} | {threads} | {ours:.4g} | {theirs:.4g} | {ours / theirs:.3g} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
