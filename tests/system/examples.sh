#!/usr/bin/env bash
# Every program of examples learns, alone and on several ranks. usage: examples.sh BUILD SOURCE
set -euo pipefail
bin=$1/bin
source=$2/examples
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Output of a program on RANKS ranks; it is printed, and kept in $output.
ranks() { # RANKS PROGRAM [ARGUMENT...]
  output=$("$bin/lockstep" run --no_fold --nproc_per_node "$1" -- "$bin/$2" "${@:3}")
  echo "$output"
}
alone() { # PROGRAM [ARGUMENT...]
  output=$("$bin/$1" "${@:2}")
  echo "$output"
}
lines_with() { # PATTERN NUMBER: NUMBER lines of the output match
  [ "$(grep -cE -- "$1" <<<"$output")" = "$2" ] || { echo "not $2 lines match: $1"; exit 1; }
}
all_say_the_same() { # PATTERN: its matches are the same text on all ranks
  [ "$(grep -oE -- "$1" <<<"$output" | sort -u | wc -l)" = 1 ] || { echo "ranks differ in: $1"; exit 1; }
}

# The first two programs differ in five lines of code, and both learn.
added=$(diff "$source/plain.cpp" "$source/five_lines.cpp" | grep -c '^> *[^ ]' || true)
[ "$added" = 5 ] || { echo "five_lines.cpp differs in $added lines"; exit 1; }
! grep -qi 'lockstep::\|#include.*lockstep' "$source/plain.cpp" || { echo "plain.cpp is not plain"; exit 1; }
learnt='right: 10[0-2][0-9] of 1024'
alone plain
lines_with "$learnt" 1
alone five_lines
lines_with "$learnt" 1
ranks 2 five_lines
lines_with "$learnt" 2
all_say_the_same 'loss.*'  # weights are equal bit for bit, and so is every digit of the loss

# An error is one line, with the exit status of its cause. usage: fails NAME COMMAND...
fails() {
  local output status=0
  output=$(env RANK=2 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29499 "${@:2}" 2>&1) || status=$?
  echo "$output"
  [ "$status" = 2 ] || { echo "$1: status $status"; exit 1; }
  [ "$(wc -l <<<"$output")" = 1 ]
  grep -q "^$1: error: " <<<"$output"
}
# Rank 2 of 2 is invalid.
for example in closure collectives comm_hook evaluation mixed_precision subgroups sync_batch_norm training_loop uneven_data virtual_ranks; do
  fails $example "$bin/$example"
done
fails own_trainer "$bin/own_trainer" nowhere 1
fails resume "$bin/resume" nowhere 1
fails spawn "$bin/spawn" 0  # 0 ranks are invalid

alone collectives
lines_with '^rank 0: sum 1, seed 42, rows 0, largest 0, meanwhile 262144, from 0$' 1
ranks 3 collectives
lines_with 'rank 0: sum 6, seed 42, rows 6, largest 2, meanwhile 262144, from 2$' 1
lines_with 'rank 2: sum 6, seed 42, rows 6, largest 2, meanwhile 262144, from 1$' 1

for number in 1 2; do
  ranks $number training_loop
  lines_with 'y = 3.00.. x \+ -[12].[09][09].. after 160 steps' $number
  all_say_the_same 'y = .*'
done

# A loop with checkpoints resumes: the same bits as without a break, also in the checkpoint.
ranks 2 resume "$folder/whole" 20
whole=$output
ranks 2 resume "$folder/parts" 8
ranks 2 resume "$folder/parts" 20
lines_with 'begins with epoch 9' 1
lines_with 'error 0.0' 2
output+=$'\n'$whole
all_say_the_same 'error.*'
cmp "$folder"/{whole,parts}/latest/model.safetensors
cmp "$folder"/{whole,parts}/latest/optimizer.safetensors
[ "$(ls -d "$folder"/parts/step_* | wc -l)" = 2 ]
ranks 1 resume "$folder/parts" 21
lines_with 'begins with epoch 21' 1

# Two ranks with half a batch each: the statistics and the loss of one rank with the whole batch.
ranks 1 sync_batch_norm
one=$output
lines_with '1 layer, running mean' 1
ranks 2 sync_batch_norm
[ "$(grep -o 'running.*' <<<"$output")" = "$(grep -o 'running.*' <<<"$one")" ]

# Rank 0 has 320 batches, rank 1 has 360: both take as many steps, and end with the same weights.
ranks 1 uneven_data
lines_with 'y = (3.0|2.9)[0-9]* x \+ -(2.0|1.9)[0-9]*, 320 \+ 0 steps' 1
ranks 2 uneven_data
lines_with 'x \+ -(2.0|1.9)[0-9]*, (320 \+ 40|360 \+ 0) steps' 2
all_say_the_same 'y = [^,]*'

# Every sample counts once, for any number of ranks.
ranks 1 evaluation
one=$(grep -o 'right.*' <<<"$output")
grep -q 'of 1003, loss 1[.].*, answers 1003' <<<"$one"
for number in 2 3; do
  ranks $number evaluation
  [ "$(grep -o 'right.*' <<<"$output")" = "$one" ]
done

# A user's own trainer: resumed on the same number of ranks it has the bits of the whole run. It
# also resumes with another number, and ends cleanly on request.
ranks 2 own_trainer "$folder/own" 6
whole=$(grep -o 'error.*' <<<"$output")
lines_with 'done after step 192, error 0.0' 1
ranks 2 own_trainer "$folder/own_parts" 2
ranks 2 own_trainer "$folder/own_parts" 6
lines_with 'begins with step 65' 1
[ "$(grep -o 'error.*' <<<"$output")" = "$whole" ]
cmp "$folder"/{own,own_parts}/latest/model.safetensors
"$bin/lockstep" run --nproc_per_node 2 -- "$bin/own_trainer" "$folder/asked" 100000 >"$folder/asked.log" 2>&1 &
until [ -e "$folder/asked/latest" ]; do sleep 0.1; kill -0 $!; done
kill -TERM $!
status=0
wait $! || status=$?
cat "$folder/asked.log"
[ "$status" = 143 ] || { echo "own_trainer ended with $status"; exit 1; }
grep -q 'ended after step' "$folder/asked.log"
step=$(grep -o 'ended after step [0-9]*' "$folder/asked.log" | grep -o '[0-9]*$')
ranks 3 own_trainer "$folder/asked" $((step / 32 + 2))
lines_with "begins with step $((step + 1))" 1
lines_with 'done after step [0-9]+, error 0[.]' 1

# Six virtual ranks: the same digits on every number of ranks up to six.
alone virtual_ranks
lines_with 'error 0[.]0' 1
one=$(grep -o 'error.*' <<<"$output")
for number in 1 2 3 4; do
  ranks $number virtual_ranks
  lines_with "$one\$" $number
done

# A user's own hook: the line is found from the points of all ranks.
for number in 1 2; do
  ranks $number comm_hook
  lines_with 'y = 3.0000 x \+ -2.0000' 1
done

# A scaled loss: the first scales are too large, and the line is still found.
for number in 1 2; do
  ranks $number mixed_precision
  lines_with 'y = 3.0 x \+ -2.0, [1-9][0-9]* steps left out, scale 2\^12[0-6]' 1
done

# LBFGS's line search, on libtorch's own loader: all ranks take the same path, bit for bit, and
# converge.
alone closure
lines_with 'error 0.000' 1
ranks 2 closure
lines_with 'error 0.000' 2
all_say_the_same 'error.*'

# Ranks started by the program: processes, threads, and one alone.
for words in "2" "3 threads" "1"; do
  # shellcheck disable=SC2086
  alone spawn $words
  lines_with 'y = 3.0000 x \+ -2.0000' "${words%% *}"
done

# Two teams of two ranks; all four together learn more than either.
alone subgroups
lines_with 'team 0: error 0.00' 1
ranks 4 subgroups
lines_with 'team [01]: error 0.00' 2
lines_with 'together: error 0.00' 1
