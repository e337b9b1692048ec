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
here=$PWD/tests/clients
lockstep=${LOCKSTEP_BIN_DIR:-$PWD/$release/bin}/lockstep
[ -x "$lockstep" ] || fail clients "$lockstep is missing: make build"

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

python=${CLIENTS_PYTHON:-$PWD/build/clients/bin/python}
if [ -z "${CLIENTS_PYTHON:-}" ] && ! cmp -s "$here/requirements.txt" build/clients/installed; then
  # The file of what is installed comes last: an interrupted installation starts again.
  /usr/bin/python3 -m venv --clear build/clients
  "$python" -m pip install --quiet --requirement "$here/requirements.txt" ||
    fail clients "tests/clients/requirements.txt cannot be installed; CLIENTS_PYTHON names a Python that has it"
  cp "$here/requirements.txt" build/clients/installed
fi
"$python" -c 'import importlib.util as i, sys; sys.exit(not i.find_spec("torch"))' || fail clients "$python has no package torch: see tests/clients/requirements.txt"

work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep_clients.XXXXXX")
scratch+=("$work")
mkdir "$work/tmp"
export TMPDIR=$work/tmp # launchers make folders of logs there

# of_folder FOLDER: the processes whose environment names it.
of_folder() {
  grep -lsz "^CLIENT_FOLDER=$1\$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 || true
}

running= # the launcher of this moment
# sweep FOLDER: ends what is left of a run.
sweep() {
  local left
  left=$(of_folder "$1")
  # shellcheck disable=SC2086
  [ -z "$left" ] || kill -KILL $left 2>/dev/null || true
}
trap '[ -z "$running" ] || { kill "$running"; wait "$running" || true; sweep "$folder"; }; exit 130' INT TERM HUP

# run LAUNCHER PROGRAM MODE: leaves result, code and left (processes) in the folder of this run.
run() {
  local code=0 left
  folder=$work/$2.$1
  mkdir "$folder" "$folder/tmp"
  local launcher=("$lockstep" run)
  if [ "$1" = torchrun ]; then
    launcher=("$python" -m torch.distributed.run)
    # The store of torchrun 2.13 outlives a restart, and Gloo finds the addresses of dead ranks
    # there. The first variable gives every attempt a store of its own, as lockstep run does. Rank 0
    # serves it with its process group, so torchft's program has to make its group first.
    [ "$3" = plain ] || launcher=(env TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 CLIENT_GROUP_FIRST=1 "${launcher[@]}")
  fi
  # One thread: the order of a sum must not depend on the launcher.
  env HOME="$work" CLIENT_FOLDER="$folder" CLIENT_KILL="${3#kill}" TMPDIR="$folder/tmp" \
    PYTHON_EXEC="$python" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES= HF_HUB_OFFLINE=1 \
    timeout --kill-after 10 "${SECONDS_EACH:-300}" "${launcher[@]}" --nproc_per_node 2 --max_restarts 1 "$here/programs/$2.py" \
    >"$folder/log" 2>&1 </dev/null &
  running=$!
  wait "$running" || code=$?
  running=
  echo $code >"$folder/code"
  for _ in {1..20}; do
    left=$(of_folder "$folder")
    [ -n "$left" ] || break
    sleep 0.1
  done
  echo $left >"$folder/left"
  sweep "$folder"
}

failures=0
compare() {
  local name=$1 mode=$2 start=$SECONDS of text="" ends=ok why="" restarts=0
  [ "$mode" = plain ] || restarts=1
  for of in torchrun lockstep; do run $of "$name" "$mode"; done
  local theirs=$work/$name.torchrun ours=$work/$name.lockstep
  if [ "$(<"$theirs/code")" != 0 ]; then
    ends=FAILED why="torchrun ended with $(<"$theirs/code")"
  elif [ "$(<"$ours/code")" != 0 ]; then
    ends=FAILED why="lockstep run ended with $(<"$ours/code")"
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
    for of in theirs ours; do
      echo "--- the end of ${!of##*.}'s output"
      tail -n 25 "${!of}/log"
    done
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
