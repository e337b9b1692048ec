#!/usr/bin/env bash
# The first run: data, then ResNet-50 on CIFAR-10 with $NPROC processes for about two minutes; then
# prints the paths of the results. DATA=folder trains on existing CIFAR-10 files; STEPS=n ends after
# n steps.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
bin=$release/bin
data=${DATA:-data/cifar10}
for folder in data runs; do
  [ ! -e $folder ] || [ -w $folder ] ||
    fail run "$PWD/$folder belongs to $(stat -c %U $folder), and $(id -un) cannot write it: remove it, or run in a clone of your own"
done
[ -n "${DATA:-}" ] || "$bin/lockstep" data cifar10 --dir "$data"
# 16 images a rank: on two cores a step then takes about a second, so the first line comes soon.
exec "$bin/lockstep" run --nproc_per_node "${NPROC:-2}" -- "$bin/lockstep" train \
  --config configs/cls/resnet/resnet50_cifar10_quick.yaml \
  -o train.dataset.data_dir="$data" eval.dataset.data_dir="$data" ${STEPS:+train.max_steps="$STEPS"}
