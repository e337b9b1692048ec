#!/bin/bash
# all_reduce (float32 sum, one host) of Lockstep, Open MPI and Gloo in turns, and how many times
# faster Lockstep is, by medians.
#
#   bench/collectives/compare_peers.sh [BUILD_DIR]        (default build/release)
#
# PEERS   folder with allreduce_mpi.cpp and allreduce_gloo.cpp (default ../shared/peers); built with
#         the flags of this script into BUILD_DIR/peers. Needs libopenmpi-dev and libgloo-dev.
# SIZES   bytes (default 25 MiB and 64 MiB);  RANKS (2);  ROUNDS of all programs (5)
# SVG     also draw a picture into this file
# PREFIX  put before every program, e.g. "chrt -r 1" where other work keeps the cores busy
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
SIZES=${SIZES:-26214400 67108864}
RANKS=${RANKS:-2}
ROUNDS=${ROUNDS:-5}
PREFIX=${PREFIX:-}
build_allreduce_peers
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# Each prints lines "NAME,ranks,bytes,min_us,median_us".
lockstep() {
  $PREFIX "$build/bin/lockstep" bench collectives --ranks "$RANKS" --sizes "${SIZES// /,}" \
    --json "$results/lockstep.json" >/dev/null
  lockstep_rows "$RANKS" <"$results/lockstep.json"
}
ompi() {
  local name=$1
  shift
  SIZES=$SIZES $PREFIX mpirun.openmpi --oversubscribe "$@" -n "$RANKS" "$bin/ompi" "$name"
}
gloo() {
  local rank pids="" meeting
  meeting=$(mktemp -d -p "$results")
  for ((rank = 0; rank < RANKS; rank++)); do
    SIZES=$SIZES RANK=$rank WORLD_SIZE=$RANKS STORE=$meeting IFACE=lo $PREFIX "$bin/gloo" "gloo_$1" "$1" &
    pids="$pids $!"
  done
  for rank in $pids; do wait "$rank"; done
}

for ((round = 1; round <= ROUNDS; round++)); do
  lockstep
  ompi ompi_vader
  ompi ompi_vader_nocma --mca btl_vader_single_copy_mechanism none
  gloo ring
  gloo hd
  if [ "$RANKS" -eq 2 ]; then gloo bcube; fi
done | tee "$results/all.csv" >&2

sort -t, -k3,3n -k1,1 -k5,5g "$results/all.csv" | awk -F, '
  { key = $3 "," $1; n[key]++; t[key, n[key]] = $5; sizes[$3]; names[$1] }
  END {
    printf "%12s %-18s %14s %10s\n", "bytes", "program", "median us", "lockstep x"
    for (s in sizes) {
      own = s ",lockstep"; base = t[own, int((n[own] + 1) / 2)]
      for (p in names) {
        key = s "," p
        if (!n[key]) continue
        m = t[key, int((n[key] + 1) / 2)]
        printf "%12d %-18s %14.1f %10.2f\n", s, p, m, m / base
      }
    }
  }' | { IFS= read -r head; echo "$head"; sort -k1,1n -k3,3g; }
[ -z "${SVG:-}" ] ||
  "$build/bin/bench_chart" "all_reduce in shared memory, $RANKS ranks" <"$results/all.csv" >"$SVG"
