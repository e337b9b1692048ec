#!/usr/bin/env bash
# From folders of pictures to trained networks by `make train-images`, then evaluation and prediction, as
# docs/guide/own_images.md has it; and what it says of faults in the folders. usage: train_images.sh BUILD SOURCE
set -euo pipefail
bin=$1/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

. "$(dirname "$0")/checks.sh"
. "$(dirname "$0")/pictures.sh"
draw() { # FOLDER FIRST COUNT: pictures of a class
  local i
  mkdir -p "$1"
  for ((i = $2; i < $2 + $3; i++)); do picture $i >"$1/$i.bmp"; done
}

# A clone that has this build: the results are in its own runs/.
mkdir -p "$folder"/clone/{scripts,build}
cp "$2/Makefile" "$folder/clone"
cp "$2"/scripts/{lib,train_images}.sh "$folder/clone/scripts"
for script in setup build; do install -m 755 /dev/stdin "$folder/clone/scripts/$script.sh" <<<'#!/bin/sh'; done
ln -s "$1" "$folder/clone/build/release"
cd "$folder/clone"

draw photos/cat 1 8
draw photos/dog 11 8
draw photos/dog/by_alice 21 1
draw photos/ship 31 8
run make train-images FOLDER=photos STEPS=4 NPROC=2
has '^Pictures: 22 in photos, 3 classes, shorter side 8 pixels$'
! grep -q '^Classes: ' <<<"$output" || fail "these classes are balanced"
has '^Evaluation: 3 pictures held out, one of 10 of each class$'
has '^Training: ResNet-18 on 32 x 32 pixels, 30 epochs, batches of 5 a rank$'
has '^Configuration: runs/photos\.yaml$'
has 'Model: resnet18-None-ClsHead$'
has 'Global batch size: 5x2x1=10$'
has 'epoch: \[2/30\]'
has 'Weights: [0-9a-f]{16} on all 2 ranks$'
for file in train_config.yaml result.log metrics.jsonl confusion.svg latest/model.safetensors; do
  [ -s "runs/photos/$file" ] || fail "runs/photos has no $file: $(ls runs/photos)"
done
[ "$(tr '\n' ' ' <runs/photos/classes.txt)" = 'cat dog ship ' ] || fail "$(cat runs/photos/classes.txt)"
trained=$(grep -o "Performance: {'acc': [0-9.]*" <<<"$output" | tail -n 1)

run "$bin/lockstep" eval -c runs/photos.yaml -o eval.ckpt_load_path=runs/photos/latest
has "$trained[,}]"
draw new_pictures 41 2
run "$bin/lockstep" predict -c runs/photos.yaml --input new_pictures --output found
has '2 pictures in found/cls_results\.txt'
grep -qE '^41\.bmp,(cat|dog|ship),0\.[0-9]+,(cat|dog|ship),' found/cls_results.csv || fail "$(cat found/cls_results.csv)"

# A second call trains with the values that the user has put into the file.
sed -i 's/^  num_epochs: 30$/  num_epochs: 1/' runs/photos.yaml
cp runs/photos.yaml edited.yaml
run make train-images FOLDER=photos STEPS=2 NPROC=2
has '^Configuration: runs/photos\.yaml, as it is; remove it to have one chosen anew$'
has 'epoch: \[1/1\]'
cmp runs/photos.yaml edited.yaml
refused '^lockstep data: error: runs/photos\.yaml exists: remove it, or name another file by --output$' \
  "$bin/lockstep" data images photos

# Pictures that cannot be read cost a line each, and so does a class without any.
draw odd/train/cat 1 8
draw odd/train/dog 11 7
draw odd/val/cat 21 1
mkdir -p odd/{train/empty,train/frog,val/frog}
for part in train val; do picture 51 | head -c 100 >odd/$part/frog/51.bmp; done
run make train-images FOLDER=odd STEPS=2 NPROC=2 NETWORK=mobilenet_v3_small
has '^Pictures: 16 in odd/train, 4 classes, shorter side 8 pixels$'
has '^Classes: 1 to 8 pictures; sampler: balanced in train\.loader draws them alike$'
has '^Evaluation: 2 pictures in odd/val$'
has '^Training: mobilenet_v3_small on 32 x 32 pixels, '
has 'WARNING - odd/train: no picture of 1 class: empty$'
has 'WARNING - 1 sample could not be used: each has a warning in the log of its rank$'
has 'WARNING - 1 sample could not be evaluated: each has a warning in the log of its rank$'
! grep -q OpenCV <<<"$output" || fail "the decoder has lines of its own: $(grep OpenCV <<<"$output")"
output=$(cat runs/odd/log_*.txt)
has 'WARNING - sample 15 cannot be used: odd/train/frog/51\.bmp: a BMP that is cut off; sample [0-9]+ \(odd/train/(cat|dog)/[0-9]+\.bmp\) stands in its place$'
has 'WARNING - sample 1 cannot be used: odd/val/frog/51\.bmp: a BMP that is cut off$'

# An archive that was unpacked into a folder of its own.
draw zip/flowers/cat 1 8
draw zip/flowers/dog 11 8
mkdir -p zip/__MACOSX/flowers
run "$bin/lockstep" data images zip
has '^Pictures: [0-9]+ in zip, 1 class, shorter side 8 pixels$'
has 'warn: zip: only one class, flowers: the classes are probably in zip/flowers, which has the folders cat, dog$'

# Names that are empty, as those of variables without a value.
refused '^lockstep data: error: lockstep data images: the name of FOLDER is empty$' "$bin/lockstep" data images ''
refused '^lockstep data: error: -o: the name is empty$' "$bin/lockstep" data images photos -o ''

# Folders that cannot be trained on.
mkdir -p none classes/{a,b}
picture 1 >none/1.bmp
for name in none classes; do
  refused "^lockstep data: error: $name holds no picture \(\.jpg, \.jpeg, \.png, \.bmp, \.webp\) in a sub-folder$" \
    env FOLDER=$name scripts/train_images.sh
  [ ! -e runs/$name.yaml ] || fail "runs/$name.yaml was written"
done
! output=$(FOLDER=nowhere scripts/train_images.sh 2>&1) || fail "it trains on no folder"
has '^train-images: error: no folder nowhere$'
! output=$(make train-images 2>&1) || fail "it trains without FOLDER"
has '^train-images: error: FOLDER= is missing: '
