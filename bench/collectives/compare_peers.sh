#!/bin/bash
# all_reduce (float32 sum, one host) of Lockstep, Open MPI and Gloo in turns, and the speed-up of
# Lockstep, by medians.
#
#   bench/collectives/compare_peers.sh [BUILD_DIR]        (default build/release)
#
# The peers' programs are those of bench/peers, built into BUILD_DIR/peers. Needs libopenmpi-dev and libgloo-dev.
# SIZES   bytes, 0 is a barrier (default 25 MiB and 64 MiB);  RANKS (2);  ROUNDS of all programs (5)
# CC      congestion control of Gloo's sockets (reno; needs root, see ../loopback.sh)
# OMPI_ALGORITHMS  numbers of Open MPI's tuned all_reduce to try, each with and without CMA; 0 is its default
#         ("0 3 4 5 6": and recursive doubling, ring, segmented ring, Rabenseifner)
# SVG     also draws a picture into this file
# PREFIX  precedes every program, e.g. "chrt -r 1" if other work keeps the cores busy
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
SIZES=${SIZES:-26214400 67108864}
RANKS=${RANKS:-2}
ROUNDS=${ROUNDS:-5}
PREFIX=${PREFIX:-}
OMPI_ALGORITHMS=${OMPI_ALGORITHMS:-0 3 4 5 6}
build_allreduce_peers
source "$(dirname "$0")/../loopback.sh"
results=$(mktemp -d)
trap 'leave_loopback; rm -rf "$results"' EXIT

# Each prints lines "NAME,ranks,bytes,min_us,median_us".
lockstep() {
  local sizes=" $SIZES "
  if [[ $sizes == *" 0 "* ]]; then bench_lockstep --op barrier --sizes 8; fi
  sizes=$(echo ${sizes// 0 / })
  if [ -n "$sizes" ]; then bench_lockstep --sizes "${sizes// /,}"; fi
}
bench_lockstep() {
  $PREFIX "$build/bin/lockstep" bench collectives --ranks "$RANKS" "$@" --json "$results/lockstep.json" >/dev/null
  lockstep_rows "$RANKS" <"$results/lockstep.json"
}
# segmentsize: of the segmented ring; with the default, none, it is the plain one
ompi() { # name, flags
  local name=$1 algorithm
  shift
  for algorithm in $OMPI_ALGORITHMS; do
    if [ "$algorithm" = 0 ]; then
      SIZES=$SIZES $PREFIX mpirun.openmpi --oversubscribe "$@" -n "$RANKS" "$bin/ompi" "$name"
    else
      SIZES=$SIZES $PREFIX mpirun.openmpi --oversubscribe "$@" --mca coll_tuned_use_dynamic_rules 1 \
        --mca coll_tuned_allreduce_algorithm "$algorithm" --mca coll_tuned_allreduce_algorithm_segmentsize 1048576 \
        -n "$RANKS" "$bin/ompi" "${name}_$algorithm"
    fi
  done
}
gloo() {
  local rank pids="" meeting
  meeting=$(mktemp -d -p "$results")
  for ((rank = 0; rank < RANKS; rank++)); do
    SIZES=$SIZES RANK=$rank WORLD_SIZE=$RANKS STORE=$meeting IFACE=lo $PREFIX $over_loopback "$bin/gloo" "gloo_$1" "$1" &
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

echo "Gloo over loopback under $loopback_cc; Open MPI: NAME_A with all_reduce algorithm A of coll/tuned, else its own choice"
sort -t, -k3,3n -k1,1 -k5,5g "$results/all.csv" | awk -F, '
  { key = $3 "," $1; n[key]++; t[key, n[key]] = $5; sizes[$3]; names[$1] }
  function median(key) { return t[key, int((n[key] + 1) / 2)] }
  END {
    for (s in sizes)
      for (p in names)
        if (n[s "," p]) printf "%12d %-22s %14.2f %10.2f\n", s, p, median(s "," p), median(s "," p) / median(s ",lockstep")
  }' | sort -k1,1n -k3,3g | tee "$results/table" |
  { printf "%12s %-22s %14s %10s\n" bytes program "median us" "lockstep x"; cat; }
echo
awk 'BEGIN { printf "%12s %14s   %s\n", "bytes", "lockstep us", "best of each peer" }
  { peer = $2 ~ /^ompi/ ? "Open MPI" : "Gloo" }
  $2 == "lockstep" { own[$1] = $3; if (!($1 in line)) { line[$1] = ""; order[++count] = $1 }; next }
  !(($1, peer) in seen) { seen[$1, peer]
    if (!($1 in line)) { line[$1] = ""; order[++count] = $1 }
    line[$1] = line[$1] sprintf("  %s %.2f (%s), %.2f x", peer, $3, $2, $4) }
  END { for (i = 1; i <= count; i++) printf "%12d %14.2f %s\n", order[i], own[order[i]], line[order[i]] }' "$results/table"
[ -z "${SVG:-}" ] ||
  "$build/bin/bench_chart" "all_reduce in shared memory, $RANKS ranks" <"$results/all.csv" >"$SVG"
