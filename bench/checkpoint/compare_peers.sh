#!/bin/bash
# A checkpoint of 200 MB in a job of two ranks: Lockstep's beside torch.distributed.checkpoint, in
# turns. Milliseconds until the files are on the disk (saved), that training waits if they are
# written meanwhile (held), and for reading (loaded).
#
#   TORCH=2.13.0 bench/checkpoint/compare_peers.sh [BUILD_DIR]
#
# FOLDER  place of the files (a new folder in TMPDIR), ROUNDS of both (3)
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
ROUNDS=${ROUNDS:-3}
folder=$(mktemp -d "${FOLDER:-${TMPDIR:-/tmp}}/lockstep-checkpoints-XXXXXX")
scratch+=("$folder")
export PYTHONWARNINGS=ignore OMP_NUM_THREADS=1
for ((round = 1; round <= ROUNDS; round++)); do
  "$build/bin/lockstep" run --raw --nproc_per_node 2 -- "$build/bin/bench_checkpoint" "$folder/ours"
  TMPDIR=$folder timeout 300 $torchrun --nnodes=1 --nproc_per_node=2 --monitor_interval 0.1 "$peers/checkpoint_save.py" "$folder/theirs" 2>"$folder/errors" ||
    { cat "$folder/errors" >&2; fail checkpoints "torch.distributed.checkpoint failed"; }
done
