# The shell loops of the Ascend guides, with a rank table.
# shellcheck shell=bash

rank_table() { # DEVICES COUNT: TABLE becomes the file that lockstep ranktable writes for host1
  local folder=$SHARED/table$2
  mkdir "$folder"
  (cd "$folder" && "$BIN/lockstep" ranktable --device_num "$1" --server_ip "$NETWORK.1" \
    --device_ip "$(seq -s, -f '192.168.100.%g' 100 $((99 + $2)))")
  TABLE=$(echo "$folder"/hccl_*.json)
}

test_shell_loop_with_a_rank_table_of_all_8_devices() {
  rank_table '[0,8)' 8
  local VIRTUAL_RANKS=8 i
  trainer ascend8
  for i in 0 1 2 3 4 5 6 7; do
    begin "$i" on host1 env RANK_TABLE_FILE="$TABLE" RANK_SIZE=8 DEVICE_NUM=8 RANK_ID=$i DEVICE_ID=$i "${TRAIN[@]}"
  done
  for i in 0 1 2 3 4 5 6 7; do ends "$i" 90 0; done
  same_weights ascend8 8
}

# Devices 4 to 7 are ranks 0 to 3; DEVICE_NUM still counts the host's devices.
test_shell_loop_with_a_rank_table_of_4_of_8_devices() {
  rank_table '[4,8)' 4
  trainer ascend4
  local i
  for i in 0 1 2 3; do
    begin "$i" on host1 env RANK_TABLE_FILE="$TABLE" RANK_SIZE=4 DEVICE_NUM=8 RANK_ID=$i DEVICE_ID=$((i + 4)) "${TRAIN[@]}"
  done
  for i in 0 1 2 3; do ends "$i" 60 0; done
  same_weights ascend4 4
}

# A MindOCR user's setup: the tutorial's loop, around a detector and a recogniser.
test_shell_loop_with_a_rank_table_trains_text() {
  rank_table '[0,2)' 2
  "$BIN/lockstep" data synth-ocr --det 4 --rec 8 --size 160x160 -o "$SHARED/text" >/dev/null
  local recipe name i
  for recipe in det/dbnet/db_r18_synth rec/crnn/crnn_vgg7_synth; do
    name=ascend_${recipe##*/}
    for i in 0 1; do
      begin "$name.$i" on host1 env RANK_TABLE_FILE="$TABLE" RANK_SIZE=2 DEVICE_NUM=8 RANK_ID=$i DEVICE_ID=$i \
        "$BIN/lockstep" train --config "$ROOT/configs/$recipe.yaml" -o "train.ckpt_save_dir=$SHARED/runs/$name" \
        "train.dataset.dataset_root=$SHARED/text" "eval.dataset.dataset_root=$SHARED/text" parallel.threads=1 \
        train.loader.batch_size=1 train.max_steps=1
    done
    for i in 0 1; do ends "$name.$i" 90 0; done
    grep -Eq 'Weights: [0-9a-f]{16} on all 2 ranks' "$SHARED/runs/$name/log_0.txt" || fail "no word of equal weights in $name/log_0.txt"
    [ -s "$SHARED/runs/$name/best.ckpt" ] || fail "no $name/best.ckpt"
  done
}
