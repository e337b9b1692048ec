#!/usr/bin/env bash
# Programs of Python's training libraries under torchrun and under lockstep run: tests/clients/run.sh
#
# Two ranks each, on CPUs by Gloo. The outcome must be equal: exit code, restarts, loss and weights.
# Also equal are torchrun's options, their table in the guide, and what lockstep run takes ("options").
# ONLY=regex selects programs by name. CLIENTS_PYTHON names a Python that has requirements.txt;
# without it a virtual environment is made in build/clients. SECONDS_EACH limits one run (300).
# LOCKSTEP_BIN_DIR is the folder of the program lockstep.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
WHO=clients
. tests/clients/launchers.sh

# Name of a program, then the rank that kills itself once, or plain.
programs=(
  "torch_store plain"
  "torchft_manager plain"
  "torchft_manager kill1"
  "ddp_snapshot kill0"
  "ddp_snapshot kill1"
  "elastic_state kill1"
  "imagenet kill1"
  "lightning_ddp kill1"
  "accelerate_ddp kill1"
  "transformers_trainer kill1"
  "deepspeed_zero kill1"
)

use_python build/clients requirements.txt torch
make_work

# run LAUNCHER PROGRAM MODE: leaves result, code and left (processes) in the folder of this run.
run() {
  local variables=(CLIENT_KILL="${3#kill}")
  begin "$work/$2.$1"
  # Where a restart is due, rank 0 serves torchrun's store with its process group. So torchft's program
  # has to make its group first.
  [ "$1 ${3%[0-9]}" != "torchrun kill" ] || variables+=(CLIENT_GROUP_FIRST=1)
  start "$1" "$3" "${variables[@]}" -- --nproc_per_node 2 --max_restarts 1 "$here/programs/$2.py"
  finish
}

failures=0
compare() {
  local name=$1 mode=$2 start=$SECONDS of text="" ends=ok why="" restarts=0
  [ "$mode" = plain ] || restarts=1
  for of in torchrun lockstep; do run $of "$name" "$mode"; done
  local theirs=$work/$name.torchrun ours=$work/$name.lockstep
  if [ "$(<"$theirs/code")" != 0 ]; then
    ends=FAILED why="torchrun $(ended "$theirs")"
  elif [ "$(<"$ours/code")" != 0 ]; then
    ends=FAILED why="lockstep run $(ended "$ours")"
  elif ! cmp -s "$theirs/result" "$ours/result"; then
    ends=FAILED why="results differ: $(diff "$theirs/result" "$ours/result" 2>&1 || true)"
  elif ! grep -q "restarts=$restarts world=2 " "$ours/result"; then
    ends=FAILED why="not $restarts restarts"
  elif [ -n "$(<"$ours/left")" ]; then
    ends=FAILED why="lockstep run left processes $(<"$ours/left")"
  fi
  text=$(tail -n 1 "$ours/result" 2>/dev/null || true)
  printf '%-22s %-6s %-7s %4d s  %s\n' "$name" "$mode" "$ends" $((SECONDS - start)) "${why:-$text}"
  if [ $ends = FAILED ]; then
    failures=$((failures + 1))
    show_logs "$theirs" "$ours"
  fi
  rm -rf "$theirs" "$ours"
}

chosen=0
if [[ options =~ ${ONLY:-.} ]]; then
  chosen=1 start=$SECONDS ends=ok
  text=$("$python" "$here/options.py" "$lockstep" 2>&1) || ends=FAILED failures=1
  printf '%-22s %-6s %-7s %4d s  %s\n' options "" $ends $((SECONDS - start)) "$text"
fi
for entry in "${programs[@]}"; do
  read -r name mode <<<"$entry"
  [[ $name =~ ${ONLY:-.} ]] || continue
  chosen=$((chosen + 1))
  compare "$name" "$mode"
done
[ $chosen -gt 0 ] || fail clients "ONLY=$ONLY matches no program of tests/clients/run.sh"
[ $failures = 0 ] || fail clients "$failures of $chosen programs"
echo "clients: $chosen programs end the same under torchrun and lockstep run"
