"""The end of gpu_check.sh: gpu_report.py FOLDER BUILD_S TOTAL_S LIMIT_S

Reads FOLDER/results.jsonl, writes FOLDER/gpu_check.json and prints a table.
"""

import json
import pathlib
import sys


def device():
    try:
        import torch
        return {"torch": torch.__version__, "cuda": torch.version.cuda,
                "gpu": torch.cuda.get_device_name(0), "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
    except Exception as error:  # the table is printed all the same
        return {"gpu": f"unknown: {error}"}


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines() if line]
    checks = [row for row in rows if "check" in row]
    run_of = lambda row: (row["model"], row["mode"], row["ranks"])
    peers = {run_of(row): row for row in rows if "peer" in row}
    steps = []
    for row in rows:
        if "backend" not in row:
            continue
        peer = peers.get(run_of(row))
        row["pytorch_ms_p50"] = peer and peer["step_ms_p50"]
        row["ratio"] = peer and row["step_ms_p50"] / peer["step_ms_p50"]
        steps.append(row)
    report = {**device(), "build_s": int(sys.argv[2]), "total_s": int(sys.argv[3]),
              "checks": checks, "steps": steps}
    (folder / "gpu_check.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"{report['gpu']}, torch {report.get('torch')}, NCCL {report.get('nccl')}; "
          f"built in {report['build_s']} s, all in {report['total_s']} s")
    for row in checks:
        print(f"{'ok  ' if row['ok'] else 'FAIL'} {row['check']:32} {row['seconds']:6.1f} s  {row['note']}")
    print(f"{'step':16} {'mode':11} {'ranks':>5} {'back end':>10} {'Lockstep':>10} {'PyTorch':>10} {'ratio':>6}")
    for row in steps:
        peer = f"{row['pytorch_ms_p50']:7.2f} ms" if row["pytorch_ms_p50"] else "-"
        ratio = f"{row['ratio']:6.2f}" if row["ratio"] else "-"
        print(f"{row['model']:16} {row['mode']:11} {row['ranks']:5} {row['backend']:>10} {row['step_ms_p50']:7.2f} ms "
              f"{peer:>10} {ratio:>6}")
    late = int(sys.argv[3]) > int(sys.argv[4])
    if late:
        print(f"gpu_check: it took longer than {sys.argv[4]} s")
    return 0 if checks and len(steps) == 6 and not late and all(row["ok"] for row in checks) else 1


sys.exit(main())
