#!/bin/bash
# Training steps of DistributedDataParallel between hosts with each communication hook, in turns.
# Prints the speed-up over the plain average, by medians. Hosts: see hosts.sh.
#
#   bench/net/hooks.sh [BUILD_DIR]        (default build/release)
#
# HOSTS  number of hosts (2);  RATE  of a host's link (1gbit);  MODEL (mlp50m);  ROUNDS (3)
# HOOKS  ("none auto fp16 bf16 int8")
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}}" && pwd)
source "$(dirname "$0")/hosts.sh"
HOSTS=${HOSTS:-2}
RATE=${RATE:-1gbit}
MODEL=${MODEL:-mlp50m}
ROUNDS=${ROUNDS:-3}
HOOKS=${HOOKS:-none auto fp16 bf16 int8}

make_hosts "$HOSTS" "$RATE"
for ((round = 1; round <= ROUNDS; round++)); do
  for hook in $HOOKS; do
    warmup=()
    [ "$hook" != auto ] || warmup=(--warmup 20)  # its trial takes 17 steps
    on_every_host "$HOSTS" "$build/bin/lockstep" bench ddp --model "$MODEL" --comm_hook "$hook" "${warmup[@]}" \
      --json "$results/ddp.json" >/dev/null
    tr -d ' \n' <"$results/ddp.json" |
      sed -E 's/.*"comm_exposed_ms":([0-9.e+-]+),.*"step_ms_p50":([0-9.e+-]+).*/'"$hook"' \2 \1\n/'
  done
done | tee "$results/all" >&2

sort -k1,1 -k2,2g "$results/all" | awk '
  { n[$1]++; step[$1, n[$1]] = $2; exposed[$1, n[$1]] = $3 }
  function median(of, hook) { return of[hook, int((n[hook] + 1) / 2)] }
  END {
    printf "%-8s %14s %14s %12s\n", "hook", "step, ms", "exposed, ms", "times steps"
    for (hook in n)
      printf "%-8s %14.1f %14.1f %12.2f\n", hook, median(step, hook), median(exposed, hook),
        n["none"] ? median(step, "none") / median(step, hook) : 0
  }' | { IFS= read -r head; echo "$head"; sort -k2,2gr; }
