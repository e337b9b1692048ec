#!/usr/bin/env bash
# The first run: data, then ResNet-50 on CIFAR-10 with $NPROC processes for about two minutes, then where things are.
# DATA=folder trains on CIFAR-10 files that are already there.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin
data=${DATA:-data/cifar10}
[ -n "${DATA:-}" ] || "$bin/lockstep" data cifar10 --dir "$data"
# 16 images a rank: on two cores a step then takes about a second, so the first line comes soon.
exec "$bin/lockstep" run --nproc_per_node "${NPROC:-2}" -- "$bin/lockstep" train \
  --config configs/cls/resnet/resnet50_cifar10_quick.yaml -o train.dataset.data_dir="$data" eval.dataset.data_dir="$data"
