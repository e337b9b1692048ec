#!/bin/bash
# Time from the death of one of two workers by SIGKILL to the first complete step of the next
# attempt. The same program runs under lockstep run with and without the fork server, and under
# torchrun.
#
#   bench/launch/restart.sh [BUILD_DIR]        (default build/release)
#
# TORCH     version of PyTorch, as for make; TORCHRUN  another command of torchrun
# TORCHFT   a Python with bench/peers/requirements.txt, which has torchft: the next step of the replica
#           that is left, by its defaults and with a heartbeat of 0.5 s, and the batches that are lost
# ROUNDS    of all launchers (5)
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
ROUNDS=${ROUNDS:-5}
export PYTHONWARNINGS=ignore OMP_NUM_THREADS=1
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
worker=$build/bin/restart_worker

timed() { # name command...: appends milliseconds to the file `name`
  local name=$1
  shift
  timeout 120 "$@" >"$results/output" 2>&1 || { cat "$results/output" >&2; echo "restart: $name failed" >&2; exit 1; }
  grep -oE '(killed|stepped) [0-9]+' "$results/output" |
    awk '{at[$1] = $2} END {printf "%.1f\n", (at["stepped"] - at["killed"]) / 1000}' >>"$results/$name.ms"
}

run="$build/bin/lockstep run --nproc_per_node 2 --max_restarts 1 -- $worker"
for ((round = 1; round <= ROUNDS; round++)); do
  timed lockstep $run
  timed lockstep_loaded env LOCKSTEP_FORK_SERVER=0 $run
  TMPDIR=$results timed torchrun $torchrun --nnodes=1 --nproc_per_node=2 --max_restarts 1 --no_python "$worker"
  TMPDIR=$results timed torchrun_0.1s $torchrun --nnodes=1 --nproc_per_node=2 --max_restarts 1 --monitor_interval 0.1 --no_python "$worker"
  [ -n "${TORCHFT:-}" ] || continue
  for setting in "torchft" "torchft_0.5s 500"; do
    read -r name heartbeat <<<"$setting"
    timed $name "$TORCHFT" "$peers/torchft_restart.py" $heartbeat
    sed -n 's/^lost //p' "$results/output" >>"$results/$name.lost"
  done
done

printf '%-16s %12s %12s\n' "kill to step" "min ms" "median ms"
for name in lockstep lockstep_loaded torchrun torchrun_0.1s ${TORCHFT:+torchft torchft_0.5s}; do
  sort -n "$results/$name.ms" |
    awk -v name="$name" '{v[NR] = $1} END {printf "%-16s %12.1f %12.1f\n", name, v[1], v[int((NR + 1) / 2)]}'
done
for lost in "$results"/*.lost; do
  [ ! -e "$lost" ] || echo "$(basename "$lost" .lost): batches that the replica that is left lost, by round: $(tr '\n' ' ' <"$lost")"
done
