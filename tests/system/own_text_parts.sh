#!/usr/bin/env bash
# Parts of a program's own for text: of a detector a data set, a backbone, a loss and a metric; of a recogniser
# all but the data set, and a whole network. In that program, and as a shared library in the ready one.
# usage: own_text_parts.sh BUILD SOURCE
set -euo pipefail
bin=$1/bin
config=$2/examples/own_text_parts.yaml
recogniser=$2/configs/rec/crnn/crnn_vgg7_synth.yaml
plugin=$1/examples/libown_text_parts_plugin.so
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

. "$(dirname "$0")/checks.sh"

# The detector learns, alone; two ranks with the shared library have the same bits.
run "$bin/own_text_parts" -c "$config" -o train.ckpt_save_dir="$folder/one" parallel.virtual_ranks=2
has 'Model: small_maps-DBFPN-DBHead'
result=$(tail -n 1 "$folder/one/result.log")
grep -q 'counted' "$folder/one/result.log" || fail "result.log has no figure of the metric"
awk 'END { exit !($5 >= 0.8) }' "$folder/one/result.log" || fail "it has not learnt: $result"
grep -q '"loss_binary"' "$folder/one/metrics.jsonl" && fail "metrics.jsonl has a term of DBLoss"
run "$bin/lockstep" run --nproc_per_node 2 -- "$bin/lockstep" train --plugin "$plugin" -c "$config" \
  -o train.ckpt_save_dir="$folder/two" parallel.virtual_ranks=2
cmp "$folder"/{one,two}/latest/model.safetensors

# The loss logs its terms: with the same bits, in each step's record.
terms_of() { # RUN
  grep -oE '"(dice|border)":[^,}]+' "$folder/$1/metrics.jsonl"
}
terms_of one >/dev/null || fail "metrics.jsonl has no terms of the loss"
[ "$(terms_of one | wc -l)" = "$((2 * $(grep -c '"kind":"train"' "$folder/one/metrics.jsonl")))" ] || fail "steps lack the terms of the loss"
[ "$(terms_of one)" = "$(terms_of two)" ] || fail "the terms of the loss differ between one rank and two"

# The rest of the command line.
run "$bin/lockstep" eval --plugin "$plugin" -c "$config" -o train.ckpt_save_dir="$folder/one"
has "'counted': "
run "$bin/own_text_parts" --check -c "$config" -o train.ckpt_save_dir="$folder/none"
has '^Samples: 64 '
run "$bin/lockstep" train --plugin "$plugin" --list backbones
has '^  small_maps: four convolutions$'
has '^    width: channels of the first map; a whole number from 1 to 512; default 16$'
has '^  rec_vgg7: VGG of 7 layers, as CRNN has it; of rec$'
for kind in losses metrics datasets; do
  run "$bin/own_text_parts" --list $kind
done
has '^  bars: pictures with a bar each$'
run "$bin/lockstep" export --plugin "$plugin" -c "$config" --output "$folder/a.safetensors" -o train.ckpt_save_dir="$folder/one"
run "$bin/own_text_parts" --export -c "$config" --output "$folder/b.safetensors" -o train.ckpt_save_dir="$folder/one"
has '/b\.safetensors: small_maps-DBFPN-DBHead with 197746 parameters, from .*/one/'
cmp "$folder"/{a,b}.safetensors
grep -q 'backbone\.stages\.3\.0\.weight' "$folder/a.safetensors" || fail "the file lacks the names of the backbone's weights"

# Faults are one line, with what is there and the nearest name.
refused "model.backbone.name must be one of det_resnet18, .*, not 'small_maps'" "$bin/lockstep" train -c "$config"
refused "model.backbone.name must be one of .*, small_maps, small_columns, not 'smal_maps', did you mean 'small_maps'\?$" \
  "$bin/own_text_parts" -c "$config" -o model.backbone.name=smal_maps
refused "loss.name must be one of DBLoss, L1BalancedCELoss, dice_and_border, ctc_a_letter, not 'dice_and_bordr', did you mean" \
  "$bin/own_text_parts" --check -c "$config" -o loss.name=dice_and_bordr
refused "metric.name must be one or some of DetMetric, counted, lengths, not 'count', did you mean 'counted'\?$" \
  "$bin/own_text_parts" -c "$config" -o 'metric.name=[DetMetric, count]'
refused "train.dataset.type must be one of DetDataset, SynthTextDataset, bars, not 'bar', did you mean 'bars'\?$" \
  "$bin/own_text_parts" -c "$config" -o train.dataset.type=bar
refused "unknown key 'model.backbone.wdith', did you mean 'width'" "$bin/own_text_parts" -c "$config" -o model.backbone.wdith=3
refused 'model.backbone cannot be .*: model.network takes its place$' \
  "$bin/own_text_parts" -c "$config" -o 'model.network={name: column_reader}'
refused 'model.head cannot be .*: model.network takes its place, and a detector has no classes$' \
  "$bin/own_text_parts" -c "$config" -o 'model.network={name: column_reader}' model.backbone=null model.neck=null
refused 'to predict, the configuration needs a section predict or eval whose dataset.transform_pipeline begins with DecodeImage' \
  "$bin/own_text_parts" --predict -c "$config" --input "$folder" -o predict=null train.ckpt_save_dir="$folder/one"
refused "model.neck.name must be one of DBFPN, RSEFPN, not 'small_maps'" "$bin/own_text_parts" -c "$config" -o model.neck.name=small_maps
refused "'small_columns' made one whose feature_channels\(\) are \[64\]: each is at least 1, and DBFPN takes 4$" "$bin/own_text_parts" --check -c "$config" -o 'model.backbone={name: small_columns}'

# A recogniser of a recipe, on drawn words: the same bits on one rank and on two; it reads pictures.
cd "$folder"
run "$bin/lockstep" data synth-ocr --rec 16 -o data
own=("model.backbone={name: small_columns}" "loss={name: ctc_a_letter}" "metric={name: [RecMetric, lengths]}" model.neck.hidden_size=16
  train.dataset.dataset_root=data eval.dataset.dataset_root=data train.loader.batch_size=2 train.max_steps=2 parallel.virtual_ranks=2)
run "$bin/own_text_parts" -c "$recogniser" -o "${own[@]}" train.ckpt_save_dir=rec1
has 'Model: small_columns-RNNEncoder-CTCHead'
has "'lengths': "
run "$bin/lockstep" run --no_fold --nproc_per_node 2 -- "$bin/lockstep" train --plugin "$plugin" -c "$recogniser" -o "${own[@]}" train.ckpt_save_dir=rec2
cmp rec{1,2}/latest/model.safetensors
run "$bin/lockstep" predict --plugin "$plugin" -c "$recogniser" --input data/rec/train/images --output read -o "${own[@]}" train.ckpt_save_dir=rec1
[ -s read/rec_results.txt ] || fail "predict has read nothing"

# A whole network of one's own with MindOCR's loss and metric: it trains, evaluates and predicts.
whole=(model.backbone=null model.neck=null "model.head={out_channels: 37}" "model.network={name: column_reader, width: 32}"
  train.dataset.dataset_root=data eval.dataset.dataset_root=data train.loader.batch_size=2 train.max_steps=2 parallel.virtual_ranks=2)
run "$bin/own_text_parts" -c "$recogniser" -o "${whole[@]}" train.ckpt_save_dir=net1
has 'Model: column_reader'
has "'acc': "
run "$bin/lockstep" run --no_fold --nproc_per_node 2 -- "$bin/lockstep" train --plugin "$plugin" -c "$recogniser" -o "${whole[@]}" train.ckpt_save_dir=net2
cmp net{1,2}/latest/model.safetensors
run "$bin/lockstep" eval --plugin "$plugin" -c "$recogniser" -o "${whole[@]}" train.ckpt_save_dir=net1
has "'acc': "
run "$bin/lockstep" predict --plugin "$plugin" -c "$recogniser" --input data/rec/train/images --output read_whole -o "${whole[@]}" train.ckpt_save_dir=net1
[ -s read_whole/rec_results.txt ] || fail "predict has read nothing with a whole network"
refused "out_channels must be 37, not 36" "$bin/own_text_parts" -c "$recogniser" -o "${whole[@]}" "model.head={out_channels: 36}"

# The detector finds the bar of a picture: a BMP file of 64 x 64 pixels, with 40 x 16 bright ones.
{
  printf 'BM\x36\x30\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x40\0\0\0\x40\0\0\0\x01\0\x18\0\0\0\0\0\0\x30\0\0'
  printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
  for ((row = 0; row < 64; row++)); do
    for ((column = 0; column < 64; column++)); do
      if ((row >= 24 && row < 40 && column >= 10 && column < 50)); then printf '\xff\xff\xff'; else printf '\x40\x40\x40'; fi
    done
  done
} >bar.bmp
run "$bin/lockstep" predict --plugin "$plugin" -c "$config" --input bar.bmp --output found --no_draw -o train.ckpt_save_dir=one
grep -qE '^bar\.bmp\s+\[\[\[([6-9]|1[0-3]), 2[0-7]\], ' found/det_results.txt || fail "predict has not found the bar: $(cat found/det_results.txt)"
