#!/usr/bin/env bash
# The first two examples are one program but for five lines, and both learn; so do the others. usage: examples.sh BUILD SOURCE
set -euo pipefail
bin=$1/bin
source=$2/examples

added=$(diff "$source/single_process.cpp" "$source/five_lines.cpp" | grep -c '^>' || true)
[ "$added" = 5 ] || { echo "five_lines.cpp differs in $added lines"; exit 1; }

# "loss 0.012345678, right: 1020 of 1024" -> 1020
right() { grep -o 'right: [0-9]*' | cut -d' ' -f2; }

single=$("$bin/single_process")
alone=$("$bin/five_lines")
echo "one process: $single; the five lines without a launcher: $alone"
[ "$(right <<<"$single")" -ge 1000 ]
[ "$(right <<<"$alone")" -ge 1000 ]

output=$("$bin/lockstep" run --nproc_per_node 2 -- "$bin/five_lines")
echo "$output"
# Weights are equal bit for bit on both ranks, so every digit of the loss is.
[ "$(grep -c 'loss' <<<"$output")" = 2 ]
[ "$(grep -o 'loss.*' <<<"$output" | sort -u | wc -l)" = 1 ]
[ "$(grep -o 'loss.*' <<<"$output" | head -1 | right)" -ge 1000 ]

# What goes wrong is one line, with the exit status of what was at fault. usage: fails NAME COMMAND...
fails() {
  local output status=0
  output=$(env RANK=2 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29499 "${@:2}" 2>&1) || status=$?
  echo "$output"
  [ "$status" = 2 ] || { echo "$1: status $status"; exit 1; }
  [ "$(wc -l <<<"$output")" = 1 ]
  grep -q "^$1: error: " <<<"$output"
}
fails spirals "$bin/five_lines"  # rank 2 of 2 is none
fails checkpoint_loop "$bin/checkpoint_loop" nowhere 1
for example in comm_hook mixed_precision closure subgroups; do fails "$example" "$bin/$example"; done
fails spawn "$bin/spawn" 0  # 0 ranks are none

# A loop that saves goes on where it was: the same bits as without a break, also the checkpoint.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
loop() { "$bin/lockstep" run --nproc_per_node 2 -- "$bin/checkpoint_loop" "$folder/$1" "$2"; }
whole=$(loop whole 20)
loop parts 8
output=$(loop parts 20)
echo "$output"
grep -q 'begins with epoch 9' <<<"$output"
[ "$(grep -c 'error 0.0' <<<"$output")" = 2 ]
[ "$(grep -o 'error.*' <<<"$whole"$'\n'"$output" | sort -u | wc -l)" = 1 ]
cmp "$folder"/{whole,parts}/latest/model.safetensors
cmp "$folder"/{whole,parts}/latest/optimizer.safetensors
[ "$(ls -d "$folder"/parts/step_* | wc -l)" = 2 ]

# A hook of the user's own: the line is found through the points of both ranks.
output=$("$bin/lockstep" run --nproc_per_node 2 -- "$bin/comm_hook")
echo "$output"
grep -q 'y = 3.0000 x + -2.0000' <<<"$output"

# A scaled loss: the first scales are too large, and the line is found all the same.
output=$("$bin/lockstep" run --nproc_per_node 2 -- "$bin/mixed_precision")
echo "$output"
grep -q 'y = 3.0 x + -2.0, [1-9][0-9]* steps left out, scale 2^12[0-6]' <<<"$output"

# LBFGS's line search, on libtorch's own loader: both ranks go the same way, bit for bit, and arrive.
output=$("$bin/lockstep" run --nproc_per_node 2 -- "$bin/closure")
echo "$output"
[ "$(grep -c 'error 0.000' <<<"$output")" = 2 ]
[ "$(grep -o 'error.*' <<<"$output" | sort -u | wc -l)" = 1 ]

# Ranks from within the program: processes, threads, and one alone.
for ranks in "2" "3 threads" "1"; do
  output=$("$bin/spawn" $ranks)
  echo "$output"
  [ "$(grep -c 'y = 3.0000 x + -2.0000' <<<"$output")" = "${ranks%% *}" ]
done

# Two teams of two ranks; all four together know more than either.
output=$("$bin/lockstep" run --nproc_per_node 4 -- "$bin/subgroups")
echo "$output"
[ "$(grep -c 'team [01]: error 0.00' <<<"$output")" = 2 ]
grep -q 'together: error 0.00' <<<"$output"
