#!/bin/bash
# Draws scenes and words, trains a detector and a recogniser on them from scratch, and evaluates
# both on unseen pictures: `make train-ocr`. Some 40 minutes on two cores; not in CI.
#
#   scripts/train_ocr.sh [det] [rec]      both if none is named
# LOCKSTEP names the program (default build/release/bin/lockstep), DATA the folder for pictures,
# NPROC the number of ranks (default 2). Each has one thread, which is faster than one rank with as
# many threads.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
lockstep=${LOCKSTEP:-$release/bin/lockstep}
data=${DATA:-data/synth_ocr}
ranks=${NPROC:-2}
parts=${*:-det rec}
for part in $parts; do
  [[ $part =~ ^(det|rec)$ ]] || { echo "train_ocr.sh: '$part' is neither det nor rec" >&2; exit 2; }
done

"$lockstep" data synth-ocr --det 3000 --rec 30000 --size 320x320 --difficulty normal -o "$data"

# CRNN takes half the time in bfloat16, if the processor has it.
amp=O0
grep -qE 'avx512_bf16|amx_bf16' /proc/cpuinfo && amp=O1

# part configuration metric least values...
train() {
  local config=$2 folder
  folder=$(sed -n 's/^  ckpt_save_dir: *//p' "$config")
  "$lockstep" run --nproc_per_node "$ranks" -- "$lockstep" train -c "$config" \
    -o parallel.threads=1 "train.dataset.dataset_root=$data" "eval.dataset.dataset_root=$data" "${@:5}"
  local best
  best=$(sed -n "s/.*=> Best $3: \([0-9.]*\) *\$/\1/p" "$folder/log_0.txt" | tail -1)
  echo "$1: best $3 $best (at least $4 is expected)"
  awk -v best="$best" -v least="$4" 'BEGIN { exit best >= least ? 0 : 1 }'
}

for part in $parts; do
  case $part in
    det) train det configs/det/dbnet/db_r18_synth.yaml f-score 0.85 ;;
    rec) train rec configs/rec/crnn/crnn_vgg7_synth.yaml acc 0.90 system.amp_level="$amp" ;;
  esac
done
