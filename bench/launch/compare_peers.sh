#!/bin/bash
# Time to start and end processes of /bin/true, in turns: lockstep run, Open MPI's mpirun, torchrun.
#
#   bench/launch/compare_peers.sh [BUILD_DIR]        (default build/release)
#
# TORCH     version of PyTorch, as for make; TORCHRUN  another command of torchrun
# RANKS     number of processes (2)
# ROUNDS    of all programs (5)
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
RANKS=${RANKS:-2}
ROUNDS=${ROUNDS:-5}
export PYTHONWARNINGS=ignore OMP_NUM_THREADS=1
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

timed() { # name command...: appends milliseconds to the file `name`; a peer may fail
  local name=$1 start
  shift
  start=$(date +%s%N)
  timeout -k 10 60 "$@" >"$results/output" 2>&1 || {
    [ -s "$results/output" ] && cat "$results/output" >&2
    [ "$name" != lockstep ] || fail launching "lockstep run failed"
    echo "$name failed or was not done after 60 s" >&2
    return 0
  }
  echo $((($(date +%s%N) - start) / 10000)) | sed 's/..$/.&/' >>"$results/$name.ms"
}

for ((round = 1; round <= ROUNDS; round++)); do
  timed lockstep "$build/bin/lockstep" run --nproc_per_node $RANKS -- /bin/true
  timed mpirun mpirun.openmpi --oversubscribe -n $RANKS /bin/true
  TMPDIR=$results timed torchrun $torchrun --nnodes=1 --nproc_per_node=$RANKS --no_python /bin/true
done

printf '%-10s %12s %12s %8s\n' program "min ms" "median ms" rounds
for name in lockstep mpirun torchrun; do
  touch "$results/$name.ms" # of a peer that failed in all rounds it is empty
  printf '%-10s %12s %12s %8s\n' $name $(sort -n "$results/$name.ms" |
    awk '{v[NR] = $1} END {if (NR) printf "%.1f %.1f %d", v[1], v[int((NR + 1) / 2)], NR; else print "- - 0"}')
done
