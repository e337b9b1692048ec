#!/usr/bin/env python3
"""The options of the real torchrun, the table in docs/guide/from_torchrun.md, and lockstep run agree:
options.py LOCKSTEP. One line for each fault; exit code 1 if there is any.

The names come from torchrun's --help and torch.distributed.launch's. Each has one row in the table.
lockstep run takes the option in each of its spellings where the row says "works" or "unused", and
refuses it by its name with exit code 2 where it says "refused" or names a value that is.
"""
import os
import re
import socket
import subprocess
import sys
import tempfile

GUIDE = os.path.join(os.path.dirname(__file__), "../../docs/guide/from_torchrun.md")
faults = []


def names_of(module):
    """The spellings and choices of each option by its longest name with dashes, as --help lists them."""
    run = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True,
                         env=os.environ | {"COLUMNS": "200"}, check=True)
    options = {}
    for line in run.stdout.split("\n"):
        if not re.match(r"  -", line):
            continue
        invocation = re.split(r"\s{2,}", line.strip())[0]
        spellings = re.findall(r"(?:^|(?<=[ ,]))--?[A-Za-z][\w-]*", invocation)
        name = max(spellings, key=len).replace("_", "-")
        choices = re.search(r"\{(.*?)\}", invocation)
        options[name] = (spellings, choices[1].split(",") if choices else [])
    options.pop("--help", None)
    return options


def rows_of_guide():
    """What the table says of each option."""
    with open(GUIDE, encoding="utf-8") as file:
        section = file.read().split("## Options of torchrun\n")[1].split("\n## ")[0]
    rows = {}
    for name, text in re.findall(r"^\| `(--[\w-]+)[^|]* \| (.*) \|$", section, re.MULTILINE):
        if name in rows:
            faults.append(f"the guide has two rows for {name}")
        rows[name] = text
    return rows


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


def samples(folder):
    """Values that torchrun takes, or None for a flag; then those that lockstep run refuses."""
    return {
        "--nnodes": (["1", "1:1"], []), "--nproc-per-node": (["2", "cpu", "auto"], ["xpu"]),
        "--rdzv-backend": (["static", "c10d"], []), "--rdzv-endpoint": (["localhost:29400"], []),
        "--rdzv-id": (["night"], []), "--rdzv-conf": (["timeout=60"], []),
        "--standalone": ([None], []), "--max-restarts": (["1"], []),
        "--monitor-interval": (["0.5"], []), "--start-method": (["spawn", "fork", "forkserver"], []),
        "--event-log-handler": (["null"], ["console"]), "--role": (["trainer"], []),
        "--module": ([None], []), "--no-python": ([None], []), "--run-path": ([None], []),
        "--log-dir": ([folder], []), "--redirects": (["0", "3", "0:1"], []), "--tee": (["3"], []),
        "--local-ranks-filter": (["0"], []), "--duplicate-stdout-filters": (["a,b"], []),
        "--duplicate-stderr-filters": (["a,b"], []), "--node-rank": (["0"], []),
        "--master-addr": (["127.0.0.1"], []), "--master-port": ([free_port()], []),
        "--local-addr": (["127.0.0.1"], []), "--logs-specs": (["default"], ["other"]),
        "--numa-binding": (["node", "socket", "exclusive", "core-complex"], []),
        "--signals-to-handle": (["SIGTERM,SIGUSR1"], []), "--shutdown-timeout": (["5"], []),
        "--virtual-local-rank": ([None], []), "--use-env": ([None], []),
    }


def try_out(lockstep, spelling, value, program):
    words = [lockstep, "run", spelling, *([] if value is None else [value]), *program]
    variables = {"PYTHON_EXEC": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, env=os.environ | variables)
    return " ".join(words[1:]), run.returncode, run.stderr.strip()


def check_behaviour(lockstep, name, option, text, sample, program):
    spellings, choices = option
    taken, refused = sample
    for choice in set(choices) - set(taken + refused):
        faults.append(f"tests/clients/options.py does not try {name} {choice}")
    if bool(refused) != ("refused" in text):
        faults.append(f"{name}: the guide says '{text}', but {refused or 'nothing'} is refused")
    for spelling in spellings:
        for value in taken:
            words, code, err = try_out(lockstep, spelling, value, program)
            if code != 0:
                faults.append(f"lockstep {words} ended with {code}: {err}")
        for value in refused:
            words, code, err = try_out(lockstep, spelling, value, program)
            if code != 2 or spelling.lstrip("-") not in err or "not supported" not in err:
                faults.append(f"lockstep {words} ended with {code}, not refused by name: {err}")


def main():
    lockstep = sys.argv[1]
    options = names_of("torch.distributed.run")
    options |= names_of("torch.distributed.launch")
    rows = rows_of_guide()
    for name in sorted(set(options) - set(rows)):
        faults.append(f"torchrun has {name}, which docs/guide/from_torchrun.md does not have")
    for name in sorted(set(rows) - set(options)):
        faults.append(f"docs/guide/from_torchrun.md has {name}, which torchrun does not have")
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "nothing.py")
        with open(script, "w", encoding="utf-8"):
            pass
        programs = {"--module": ["platform"], "--run-path": [script]}
        for name, option in options.items():
            if name not in rows:
                continue
            sample = samples(os.path.join(folder, "logs")).get(name)
            if sample is None:
                faults.append(f"tests/clients/options.py has no value for {name}")
                continue
            check_behaviour(lockstep, name, option, rows[name], sample, programs.get(name, ["true"]))
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{len(options)} options in {sum(len(each[0]) for each in options.values())} spellings")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
