"""Compares a run's event files, as TensorBoard's own reader sees them, with its metrics.jsonl.

Needs tensorboard.

usage: tensorboard_check.py FOLDER_OF_RESULTS
"""
import json
import math
import os
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder = sys.argv[1]
accumulator = EventAccumulator(os.path.join(folder, "tensorboard"), size_guidance={"scalars": 0})
accumulator.Reload()
shown = {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
         for tag in accumulator.Tags()["scalars"]}
wanted = {}
with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as lines:
    for line in lines:
        record = json.loads(line)
        for name, value in record.items():
            if name in ("kind", "epoch", "step", "rank") or isinstance(value, str):
                continue
            value = math.nan if value is None else value
            wanted.setdefault(f"{record['kind']}/{name}", []).append((record["step"], value))

faults = sorted(set(shown) ^ set(wanted))
for tag in sorted(set(shown) & set(wanted)):
    same = len(shown[tag]) == len(wanted[tag]) and all(
        a[0] == b[0] and (math.isclose(a[1], b[1], rel_tol=1e-6, abs_tol=1e-30)
                          or math.isnan(a[1]) and math.isnan(b[1]))
        for a, b in zip(shown[tag], wanted[tag]))
    if not same:
        faults.append(tag)
    print(f"{tag}: {len(shown[tag])} values{'' if same else ', NOT those of metrics.jsonl'}")
sys.exit(f"differ: {faults}" if faults else 0)
