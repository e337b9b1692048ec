#!/usr/bin/env bash
# A data set, a network, a loss, a metric and a transform of a program's own, under the command line of
# `lockstep train`: in that program, and as a shared library in the ready one. Then recipes in C++. usage: own_parts.sh BUILD SOURCE
set -euo pipefail
bin=$1/bin
config=$2/examples/own_parts.yaml
plugin=$1/examples/libown_parts_plugin.so
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

. "$(dirname "$0")/checks.sh"
. "$(dirname "$0")/pictures.sh"
losses=0
result() { tail -n 1 "$1/result.log"; }

# It learns, alone; two ranks have the same bits with the same virtual ranks.
run "$bin/own_parts" -c "$config" -o train.ckpt_save_dir="$folder/one" parallel.virtual_ranks=2
has 'Model: layers'
has 'loss: 0\.0'
awk 'END { exit !($3 >= 0.99) }' "$folder/one/result.log" || fail "it has not learnt: $(result "$folder/one")"
run "$bin/lockstep" run --nproc_per_node 2 -- "$bin/own_parts" -c "$config" \
  -o train.ckpt_save_dir="$folder/two" parallel.virtual_ranks=2
cmp "$folder"/{one,two}/latest/model.safetensors

# The same parts as a shared library, and the rest of the command line.
run "$bin/lockstep" train --plugin "$plugin" -c "$config" -o train.ckpt_save_dir="$folder/three" parallel.virtual_ranks=2
cmp "$folder"/{one,three}/latest/model.safetensors
run "$bin/lockstep" eval --plugin "$plugin" -c "$config" -o train.ckpt_save_dir="$folder/three"
has 'hits'
run "$bin/own_parts" --check -c "$config" -o train.ckpt_save_dir="$folder/four"
has '^Samples: 512 '
run "$bin/own_parts" --list
has '^  spirals: points on two spirals$'
has '^    points: of both spirals; a whole number from 2 to 1048576; default 512$'
run "$bin/lockstep" train --plugin "$plugin" --list losses
has '^  focal: '
run "$bin/lockstep" train --list losses
has '^  CrossEntropySmooth: cross entropy, with smoothed labels; of cls$'
has '^    smoothing: of labels; .*; a number from 0 to 0\.999; default 0\.0$'
run "$bin/lockstep" train --list metrics
has '^  TopKMetric: top_1, top_5, \.\.\.: '
run "$bin/lockstep" train --list datasets
has '^    shards: tar archives such as train-.000\.\.127.\.tar; a text; required$'
run "$bin/lockstep" train --list backbones
has '^    stem: the first layers, '
run "$bin/lockstep" train --list transforms
[ "$(grep -c '^  NormalizeImage: ' <<<"$output")" = 1 ] || fail "NormalizeImage is not there once: $output"

refused '^lockstep train: error: --plugin .*none\.so: cannot be loaded: ' "$bin/lockstep" train --plugin "$folder/none.so" -c "$config"
refused "model.network.name must be one of resnet18, .*, not 'layers'" "$bin/lockstep" train -c "$config"
refused "^own_parts: error: -o model.network.wdith=3: unknown key 'model.network.wdith', did you mean 'width'" \
  "$bin/own_parts" -c "$config" -o model.network.wdith=3
refused "^own_parts: error: --list: no kind of part 'network', did you mean 'networks'" "$bin/own_parts" --list network

# A loss that builds on a built-in one: without its own term it has the same bits.
for loss in '{name: CrossEntropySmooth, smoothing: 0.1}' '{name: less_sure, smoothing: 0.1, weight: 0}' \
  '{name: less_sure, smoothing: 0.1}'; do
  run "$bin/lockstep" train --plugin "$plugin" -c "$config" -o "loss=$loss" scheduler.num_epochs=2 \
    train.ckpt_save_dir="$folder/built_on_$((++losses))"
done
cmp "$folder"/built_on_{1,2}/latest/model.safetensors
! cmp -s "$folder"/built_on_{2,3}/latest/model.safetensors || fail "the entropy has no effect"
run "$bin/own_parts" --list losses
has '^  less_sure: cross entropy less entropy$'
[ "$(grep -c '^    smoothing: of labels; the loss of an evaluation ' <<<"$output")" = 2 ] || fail "a part lacks the settings of the other: $output"
refused "^own_parts: error: .*: unknown key 'loss\.smothing', did you mean 'smoothing'\?$" \
  "$bin/own_parts" --check -c "$config" -o 'loss={name: less_sure, smothing: 0.1}'

# The transform, on pictures in files: the same bits on one rank with workers and on two.
mkdir -p "$folder"/pictures/{cat,dog}
for i in 1 2 3 4; do
  picture $i >"$folder/pictures/cat/$i.bmp"
  picture $((i + 4)) >"$folder/pictures/dog/$i.bmp"
done
cat >"$folder/pictures.yaml" <<END
model: {type: cls, backbone: {name: resnet18, stem: cifar}, head: {num_classes: 2}}
scheduler: {scheduler: constant, lr: 0.01, num_epochs: 1, warmup_epochs: 0}
train:
  ckpt_save_dir: $folder/noise
  dataset:
    type: ImageFolderDataset
    data_dir: $folder/pictures
    transform_pipeline: [{RandomNoise: {most: 8}}, {NormalizeImage: }]
  loader: {batch_size: 2, num_workers: 3}
parallel: {virtual_ranks: 2}
END
run "$bin/own_parts" -c "$folder/pictures.yaml"
run "$bin/lockstep" run --nproc_per_node 2 -- "$bin/lockstep" train --plugin "$plugin" -c "$folder/pictures.yaml" \
  -o train.ckpt_save_dir="$folder/noise2" train.loader.num_workers=1
cmp "$folder"/{noise,noise2}/latest/model.safetensors
run "$bin/own_parts" -c "$folder/pictures.yaml" -o train.ckpt_save_dir="$folder/less" \
  'train.dataset.transform_pipeline=[{RandomNoise: {most: 7}}, {NormalizeImage: }]'
! cmp -s "$folder"/{noise,less}/latest/model.safetensors || fail "the noise has no effect"
run "$bin/own_parts" --list transforms
has '^  RandomNoise: noise on each byte$'
has '^    most: of 255; a whole number from 1 to 255; default 16$'
refused "unknown key 'train.dataset.transform_pipeline.RandomNiose', did you mean 'RandomNoise'\?$" "$bin/own_parts" --check \
  -c "$folder/pictures.yaml" -o 'train.dataset.transform_pipeline=[{RandomNiose: }]'

# Export and prediction work with the parts, too.
run "$bin/lockstep" export --plugin "$plugin" -c "$config" --output "$folder/a.safetensors" -o train.ckpt_save_dir="$folder/one"
run "$bin/own_parts" --export -c "$config" --output "$folder/b.safetensors" -o train.ckpt_save_dir="$folder/one"
has '/b\.safetensors: layers with 1218 parameters, from .*/one/'
cmp "$folder"/{a,b}.safetensors
run "$bin/own_parts" --export -c "$config" --output "$folder/c.onnx" -o train.ckpt_save_dir="$folder/one"
grep -q 'layers\.4\.bias' "$folder/c.onnx" || fail "the ONNX file lacks the names of the weights"
refused "^own_parts --predict: error: to predict after training on 'spirals', the configuration needs a section predict" \
  "$bin/own_parts" --predict -c "$config" --input "$folder"
refused "not 'layers'; --plugin FILE adds networks of one's own" "$bin/lockstep" export -c "$config" --output "$folder/d.onnx"
refused "^own_parts: error: unexpected word 'predict', did you mean '--predict' as the first word\?$" "$bin/own_parts" predict -c "$config"
run "$bin/own_parts" --export --help
has '^usage: own_parts --export -c FILE --output FILE \[OPTIONS\]$'

# From C++: two inputs and outputs, the same bits on one rank and on two; frozen layers.
run "$bin/two_inputs" "$folder/five"
awk '/^right: / { right = $2 } END { exit !(right >= 0.95) }' <<<"$output" || fail "two_inputs has not learnt"
run "$bin/lockstep" run --no_fold --nproc_per_node 2 -- "$bin/two_inputs" "$folder/six"
cmp "$folder"/{five,six}/latest/model.safetensors
run "$bin/picture_folder" "$folder/pictures" "$folder/convs"
has 'Model: small_convs$'
run "$bin/lockstep" run --no_fold --nproc_per_node 2 -- "$bin/picture_folder" "$folder/pictures" "$folder/convs2"
cmp "$folder"/{convs,convs2}/latest/model.safetensors
run "$bin/fine_tuning" "$folder/seven"
has '^rank 0: loss 0\.00'
run "$bin/lockstep" run --no_fold --nproc_per_node 2 -- "$bin/fine_tuning" "$folder/eight"
has '^\[0\] rank 0: loss 0\.00'
has '^\[1\] rank 1: loss 0\.00'

# A task with two optimizers: it learns, has the same bits on one rank and on two, in its program and as a
# library, and goes on where it ended, also by the file that a run leaves.
task=$2/examples/gan.yaml
library=$1/examples/libgan_plugin.so
two=("$bin/lockstep" run --no_fold --nproc_per_node 2 --)
run "$bin/gan" -c "$task" -o train.ckpt_save_dir="$folder/gan"
awk '/^distance: / { far = $2 } END { exit !(far != "" && far <= 0.2) }' <<<"$output" || fail "gan has not learnt"
has 'Model: gan$'
run "${two[@]}" "$bin/lockstep" train --plugin "$library" -c "$task" -o train.ckpt_save_dir="$folder/gan2"
run "$bin/gan" -c "$task" -o train.ckpt_save_dir="$folder/gan3" train.max_steps=200 scheduler.num_epochs=20
run "${two[@]}" "$bin/gan" -c "$folder/gan3/args.yaml" -o train.max_steps=0 scheduler.num_epochs=40 model.resume=True
for file in model optimizer optimizer_generator; do
  cmp "$folder"/{gan,gan2}/latest/$file.safetensors
  cmp "$folder"/{gan,gan3}/latest/$file.safetensors
done
grep -q '"loss_generator"' "$folder/gan/metrics.jsonl" || fail "metrics.jsonl has no loss_generator"
low=(system.amp_level=O1 train.gradient_accumulation_steps=4 train.max_steps=40 'loss_scaler={type: dynamic, loss_scale: 512}')
run "$bin/gan" -c "$task" -o train.ckpt_save_dir="$folder/gan5" "${low[@]}"
run "${two[@]}" "$bin/gan" -c "$task" -o train.ckpt_save_dir="$folder/gan6" "${low[@]}"
cmp "$folder"/gan{5,6}/latest/model.safetensors

# The rest of the command line with this task. Its networks have 130 and 105 weights of this width.
small=(train.ckpt_save_dir="$folder/gan7" model.width=8 train.max_steps=20 system.val_start_epoch=1)
run "$bin/gan" --check -c "$task" -o "${small[@]}"
has '^  width: 8$'
has '^Parameters: 235 '
run "$bin/gan" -c "$task" -o "${small[@]}"
run "$bin/gan" --check -c "$task" -o "${small[@]}" model.resume=True
run "${two[@]}" "$bin/lockstep" eval --plugin "$library" -c "$task" -o "${small[@]}"
has "Performance: \{'distance': "
run "$bin/gan" --export -c "$task" --output "$folder/gan.safetensors" -o "${small[@]}"
run "$bin/gan" --find-lr 20 -c "$task" -o "${small[@]}"
has '^Suggestion: |^No suggestion'
run "$bin/gan" --list tasks
has '^  rec: recognition of text'
has '^  gan: points of a ring, by two networks$'
has '^    width: of the inner layers; a whole number from 1 to 4096; default 64$'
refused '^gan: error: recipe gan: a recipe with training_step needs system.amp_level=O0 or O1: ' \
  "$bin/gan" -c "$task" -o "${small[@]}" system.amp_level=O2
refused "^lockstep train: error: .*gan\.yaml:2: model\.type must be one of cls, det, rec, not 'gan'; --plugin FILE adds" \
  "$bin/lockstep" train -c "$task"
refused "^gan: error: -o model\.type=gna: model\.type must be one of cls, det, rec, gan, not 'gna', did you mean 'gan'\?" \
  "$bin/gan" -c "$task" -o model.type=gna
refused "^gan: error: -o loss\.name=focal: loss\.name would have no effect: model\.type gan has a loss of its own$" \
  "$bin/gan" -c "$task" -o loss.name=focal
refused "^gan --predict: error: model\.type gan has no classes \(Recipe::num_classes\)" "$bin/gan" --predict -c "$task" --input "$folder" \
  -o "${small[@]}"

# Groups of parameters, and an end that a metric asks for.
run "$bin/own_parts" -c "$config" -o train.ckpt_save_dir="$folder/early" 'train.early_stopping={patience: 2, min_delta: 1}' \
  'optimizer.groups=[{params: layers.0, frozen: True}]' optimizer.layer_decay=0.5 parallel.scale_rate=sqrt parallel.reference_batch=64
has 'Learning rate: scheduler.lr 0\.01 x 0\.5 = 0\.005 \(parallel.scale_rate sqrt: a batch of 16, reference_batch 64\)'
has 'Parameters: 4 of 6 are trained, 2 are frozen; rates of 0\.5 to 1 times the schedule'
has 'Early stopping: hits has not improved in 2 evaluations, best: '
grep -q '"early stopping"' "$folder/early/events.jsonl" || fail "events.jsonl does not say why the run ended"
run "$bin/own_parts" -c "$config" -o train.ckpt_save_dir="$folder/early" model.resume=True \
  'train.early_stopping={patience: 2, min_delta: 1}' 'optimizer.groups=[{params: layers.0, frozen: True}]'
has 'There is nothing left to train: hits had not improved in 2 evaluations'
refused "^own_parts: error: -o optimizer.groups=.*: optimizer.groups: 'layrs' selects no parameter of the network, did you mean 'layers'\?" \
  "$bin/own_parts" -c "$config" -o 'optimizer.groups=[{params: layrs, frozen: True}]'

# A search for a rate finds the same on any ranks, and leaves the folder of results alone.
run "$bin/own_parts" --find-lr 60 -c "$config" -o train.ckpt_save_dir="$folder/search" parallel.virtual_ranks=2
has '^Suggestion: scheduler.lr=[0-9.]+e-0[1-3], a tenth of the rate at which the loss is lowest'
table=$(grep -E '^[0-9]' <<<"$output")
[ ! -e "$folder/search" ] || fail "the search wrote into the folder of results"
[ -s "$folder/search.find_lr.svg" ] || fail "the search drew no picture"
run "$bin/lockstep" run --no_fold --nproc_per_node 2 -- "$bin/own_parts" --find-lr 60 -c "$config" \
  -o train.ckpt_save_dir="$folder/search" parallel.virtual_ranks=2
[ "$(grep -oE '[0-9.]+e-?[+0-9]+ .*' <<<"$output" | grep -v Sugg)" = "$table" ] || fail "the tables differ: $table"
run "$bin/own_parts" --plan --from 8 --ranks 2 -c "$config"
has '^Same run, by virtual ranks: -o parallel.virtual_ranks=8$'
has '^Same batch, by accumulation: -o parallel\.global_batch=128$'
has '^Smaller run, by rule: -o scheduler.lr=0\.0025 \(linear; 0\.005 by square root\)$'
refused '^lockstep plan: error: --from N and --ranks N are needed$' "$bin/lockstep" plan --from 8
