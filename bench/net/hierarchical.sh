#!/bin/bash
# all_reduce (float32 sum) between hosts with one and with several ranks a host. Measures time, and
# the bytes that a host sends for one operation, as its network device counts them (before the
# kernel splits them into packets). Ranks of a host first reduce in shared memory, so several should
# send as much as one. Hosts: see hosts.sh.
#
#   bench/net/hierarchical.sh [BUILD_DIR]        (default build/release)
#
# HOSTS  number of hosts (2);  RATE  of a host's link (1gbit);  BYTES (16 MiB);  RANKS  a host, in turns ("1 2")
# ROUNDS (3)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}}" && pwd)
source "$(dirname "$0")/hosts.sh"
HOSTS=${HOSTS:-2}
RATE=${RATE:-1gbit}
BYTES=${BYTES:-16777216}
RANKS=${RANKS:-1 2}
ROUNDS=${ROUNDS:-3}

sent() { ip netns exec "${host}1" cat /sys/class/net/eth0/statistics/tx_bytes; }
# A run of a fixed number of rounds, because --seconds is shorter than one. Prints its median time
# in us, and the bytes that host 1 sent.
run_of() { # ranks a host, rounds
  local before
  before=$(sent)
  RANKS_A_HOST=$1 on_every_host "$HOSTS" "$build/bin/lockstep" bench collectives --sizes "$BYTES" --seconds 0.01 \
    --rounds "$2" --json "$results/run.json" >/dev/null
  echo "$(lockstep_median) $(($(sent) - before))"
}
lockstep_median() { tr -d ' \n' <"$results/run.json" | sed -E 's/.*"p50_us":([0-9.e+-]+),.*/\1/'; }

# Operations of a round: as many as `bench collectives` runs back to back for this size.
repeats=$((BYTES <= 1 << 10 ? 200 : BYTES <= 1 << 16 ? 100 : BYTES <= 1 << 20 ? 20 : BYTES <= 16 << 20 ? 3 : 1))
few=2 many=12
make_hosts "$HOSTS" "$RATE"
for ((round = 1; round <= ROUNDS; round++)); do
  for ranks in $RANKS; do
    read -r _ start < <(run_of "$ranks" $few)  # meeting, warming up, and a few rounds
    read -r time all < <(run_of "$ranks" $many)
    echo "$ranks $time $(((all - start) / ((many - few) * repeats)))"
  done
done | tee "$results/all" >&2

echo "$HOSTS hosts, $RATE, $BYTES bytes, $CC"
sort -k1,1n -k2,2g "$results/all" | awk '
  { n[$1]++; time[$1, n[$1]] = $2; sent[$1] += $3; if (!first) first = $1 }
  function median(ranks) { return time[ranks, int((n[ranks] + 1) / 2)] }
  END {
    printf "%14s %12s %22s %8s %8s\n", "ranks a host", "median ms", "bytes a host sends", "time x", "bytes x"
    for (ranks in n)
      printf "%14d %12.2f %22d %8.3f %8.4f\n", ranks, median(ranks) / 1000, sent[ranks] / n[ranks],
        median(ranks) / median(first), sent[ranks] / n[ranks] / (sent[first] / n[first])
  }' | { IFS= read -r head; echo "$head"; sort -k1,1n; }
