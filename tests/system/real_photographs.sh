#!/usr/bin/env bash
# ResNet-50 at 224 pixels on photographs as they are, by two ranks. LOCKSTEP_TEST_DATA has ocr_det/train.zip: its
# photographs have two classes here, of few and of many labelled words. usage: real_photographs.sh BUILD SOURCE
set -euo pipefail
bin=$1/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

. "$(dirname "$0")/checks.sh"
cd "$folder"
cmake -E tar xf "$LOCKSTEP_TEST_DATA/ocr_det/train.zip"
mkdir -p photos/{few,many}
for photo in train_images/img_[12]??.jpg; do
  name=$(basename "$photo" .jpg)
  class=many
  [ "$(wc -l <"train_gts/gt_$name.txt")" -gt 8 ] || class=few
  mv "$photo" photos/$class
done

run "$bin/lockstep" data images photos --network resnet50 -o recipe.yaml
has ', 2 classes, shorter side 720 pixels$'
has '^Training: resnet50 on 224 x 224 pixels, '
settings=(train.loader.batch_size=2 train.max_steps=2 system.log_interval=1 system.val_while_train=False parallel.virtual_ranks=2)
run "$bin/lockstep" run --nproc_per_node 2 -- "$bin/lockstep" train -c recipe.yaml -o train.ckpt_save_dir=two "${settings[@]}"
has 'Weights: [0-9a-f]{16} on all 2 ranks$'
[ "$(grep -cE '"loss": ?[0-2]\.[0-9]+,' two/metrics.jsonl)" = 2 ] || fail "not two losses near that of chance, 0.69: $(cat two/metrics.jsonl)"

# One rank with both halves of the batch has the same bits.
run "$bin/lockstep" train -c recipe.yaml -o train.ckpt_save_dir=one "${settings[@]}"
cmp {one,two}/latest/model.safetensors
