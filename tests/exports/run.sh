#!/usr/bin/env bash
# Lockstep's files in the programs that they are for: weights in torchvision and timm, and back; ONNX
# in onnxruntime; event files in TensorBoard. A target of its own, because it needs packages of PyPI.
#
# NETWORKS="resnet18 vit_b_16" selects of the zoo (all). EXPORTS_PYTHON names a Python that has
# requirements.txt; without it a virtual environment is made in build/exports.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
here=$PWD/tests/exports
bin=$PWD/$release/bin

python=${EXPORTS_PYTHON:-$PWD/build/exports/bin/python}
if [ -z "${EXPORTS_PYTHON:-}" ] && ! cat "$here/requirements.txt" bench/peers/torchvision/requirements.txt | cmp -s - build/exports/installed; then
  # The file of what is installed comes last: an interrupted installation starts again.
  rm -rf build/exports
  python3 -m venv build/exports
  "$python" -m pip install --quiet --requirement "$here/requirements.txt" ||
    fail exports "tests/exports/requirements.txt cannot be installed with $("$python" --version); EXPORTS_PYTHON names a Python that has it"
  cat "$here/requirements.txt" bench/peers/torchvision/requirements.txt >build/exports/installed
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep_exports.XXXXXX")
scratch+=("$work")

echo "exports: TensorBoard reads the event files of a run on two ranks"
"$bin/lockstep" data cifar10 --generate --records 640 --dir "$work/data" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$bin/lockstep" run --nproc_per_node 2 -- "$bin/lockstep" train \
  --config configs/cls/resnet/resnet18_cifar10.yaml -o system.tensorboard=True \
  train.max_steps=3 train.ckpt_save_dir="$work/run" \
  train.dataset.data_dir="$work/data" eval.dataset.data_dir="$work/data" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$python" "$here/tensorboard_check.py" "$work/run"

echo "exports: weights and ONNX, the largest difference of a score divided by the largest score"
# shellcheck disable=SC2086
LOCKSTEP_BIN_DIR=$bin "$python" bench/peers/torchvision/compare.py ${NETWORKS:-}
echo "exports: ok"
