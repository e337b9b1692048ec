#!/bin/bash
# 32 ranks of the CIFAR-10 trainer, from the start of the launcher to the first barrier. By then each
# rank has read the configuration, built the network and its optimizer and met all others. Rank 0 of
# lockstep train --check then prints its first line.
#
#   bench/launch/first_barrier.sh [BUILD_DIR]        (default build/release)
#
# RANKS     of the job (32)
# ROUNDS    with and without the fork server, in turns (5)
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
RANKS=${RANKS:-32}
ROUNDS=${ROUNDS:-5}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
"$build/bin/lockstep" data cifar10 --generate --records 640 --dir "$results/data" >/dev/null 2>&1

timed() { # name command...: appends milliseconds to the file `name`
  local name=$1 start line
  shift
  start=$(date +%s%N)
  { read -r line && echo $((($(date +%s%N) - start) / 1000000)) >>"$results/$name.ms"; cat >/dev/null; } \
    < <(timeout 300 "$@" 2>"$results/errors") ||
    { cat "$results/errors" >&2; echo "first_barrier: $name failed" >&2; exit 1; }
}

run="$build/bin/lockstep run --nproc_per_node $RANKS -- $build/bin/lockstep train --check
  -c $root/configs/cls/resnet/resnet18_cifar10.yaml -o train.dataset.data_dir=$results/data
  train.loader.batch_size=4 train.ckpt_save_dir=$results/out"
for ((round = 1; round <= ROUNDS; round++)); do
  timed forked $run
  timed loaded env LOCKSTEP_FORK_SERVER=0 $run
done

printf '%-16s %12s %12s\n' "$RANKS ranks" "min ms" "median ms"
for name in forked loaded; do
  sort -n "$results/$name.ms" |
    awk -v name="$name" '{v[NR] = $1} END {printf "%-16s %12d %12d\n", name, v[1], v[int((NR + 1) / 2)]}'
done
