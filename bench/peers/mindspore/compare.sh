#!/usr/bin/env bash
# MindSpore and MindOCR beside Lockstep, from nothing: makes a Python with both, draws data, trains,
# and compares losses, gradients, scores, two ranks and 100 steps. Ends with 1 if a floor is missed.
#
#   bench/peers/mindspore/compare.sh [BUILD_DIR]        (default build/release)
#
# WORK        folder for all files (a temporary one, which is removed at the end)
# VENV        Python with requirements.txt and MindOCR; made if it does not exist ($WORK/venv)
# PYTHON      makes VENV (python3.11)
# TORCH_PYTHON  has PyTorch, NumPy and YAML, for float64.py (/usr/bin/python3)
# DATA_PATH   has det/train, det/test and rec/train with images/ and det_gt.txt or rec_gt.txt (drawn)
# CIFAR_PATH  CIFAR-10's binary files (a stand-in is drawn)
# PARTS       some of "gradients scores ranks curves" (all)
# STEPS       of the curves (100); PICTURE is their file ($WORK/curves.svg)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=$(cd "${1:-$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}}" && pwd)
if [ -z "${WORK:-}" ]; then
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"
VENV=${VENV:-$WORK/venv} PYTHON=${PYTHON:-python3.11} TORCH_PYTHON=${TORCH_PYTHON:-/usr/bin/python3}
PARTS=${PARTS:-gradients scores ranks curves} STEPS=${STEPS:-100} PICTURE=${PICTURE:-$WORK/curves.svg}
export OMP_NUM_THREADS=1 GLOG_v=3
cd "$WORK"

if [ ! -x "$VENV/bin/python" ]; then
  "$PYTHON" -m venv "$VENV"
  "$VENV/bin/pip" install -q -r "$here/requirements.txt"
  "$VENV/bin/pip" install -q --no-deps mindocr==0.5.0
fi
if [ -z "${DATA_PATH:-}" ]; then
  DATA_PATH=$WORK/drawn
  [ -d "$DATA_PATH" ] || "$build/bin/lockstep" data synth-ocr --det 4 --rec 128 --test_share 1 \
    --size 160x160 --difficulty easy -o "$DATA_PATH" >/dev/null
fi
if [ -z "${CIFAR_PATH:-}" ]; then
  CIFAR_PATH=$WORK/cifar10
  [ -d "$CIFAR_PATH" ] || "$build/bin/lockstep" data cifar10 --generate --records 500 --dir "$CIFAR_PATH" >/dev/null
fi
export DATA_PATH CIFAR_PATH

ours() { "$build/bin/bench_mindspore" "$@"; }
theirs() { "$VENV/bin/python" "$here/peer.py" "$@"; }
compare() { "$VENV/bin/python" "$here/compare.py" "$@"; }
missed=0
floor() { # a floor: runs its command, and remembers whether it failed
  "$@" || missed=1
}

# Fresh weights and batches of one of the configurations, once: NAME.ckpt, NAME-batches.
start() { # NAME COUNT
  [ -d "$1-batches" ] || ours batches "$here/$1.yaml" "$2" "$1-batches"
  [ -f "$1.ckpt" ] || theirs init "$here/$1.yaml" "$1.ckpt"
}

both() { # NAME STEPS SUFFIX: NAME-ours$3 and NAME-theirs$3, from NAME.ckpt
  mkdir -p "$1-ours$3" "$1-theirs$3"
  ours train "$here/$1.yaml" "$1.ckpt" "$1-batches" "$2" 0.001 "$1-ours$3" >"$1-ours$3/log.txt"
  theirs train "$here/$1.yaml" "$1.ckpt" "$1-batches" "$2" 0.001 "$1-theirs$3" >"$1-theirs$3/log.txt"
}

gradients() { # NAME MODE LIMIT: also against float64.py's MODE
  start "$1" 8
  both "$1" 3 ""
  "$TORCH_PYTHON" "$here/float64.py" "$2" "$here/$1.yaml" "$1.safetensors" "$1-batches/batch_0.safetensors" "$1-$2" >/dev/null
  floor compare first "$1" "$1-ours" "$1-theirs" "$1-$2" "$3"
}

performance() { # LOG: its line of scores
  grep -o "Performance: {.*}" "$1" | tail -n 1
}

# Lockstep trains; its .ckpt and the one of MindSpore after two more steps are evaluated by both.
scores() { # NAME [KEY=VALUE ...]
  local name=$1 folder=$1-run weights side
  start "$name" 8
  "$build/bin/lockstep-train" -c "$here/$name.yaml" -o train.ckpt_save_dir="$folder" parallel.threads=1 "${@:2}" >"$name-train.log"
  mkdir -p "$name-more"
  theirs train "$here/$name.yaml" "$folder/best.ckpt" "$name-batches" 2 0.0001 "$name-more" >"$name-more/log.txt"
  for weights in "$folder/best.ckpt" "$name-more/trained.ckpt"; do
    "$build/bin/lockstep-train" -c "$here/$name.yaml" --eval -o train.ckpt_save_dir="$name-eval" parallel.threads=1 \
      eval.ckpt_load_path="$PWD/$weights" >"$name-eval-ours.log"
    theirs eval "$here/$name.yaml" "$weights" >"$name-eval-theirs.log" 2>&1
    for side in ours theirs; do
      echo "$name $weights $side $(performance "$name-eval-$side.log")"
    done
    floor compare scores "$name-eval-ours.log" "$name-eval-theirs.log"
  done
}

# Two processes under msrun on each side: the calls of a group, and the losses of data parallel.
ranks() {
  local start_two=("$VENV/bin/msrun" --worker_num 2 --local_worker_num 2 --join True --log_dir)
  PATH=$VENV/bin:$PATH "${start_two[@]}" ranks-ours "$here/exec.py" "$build/bin/bench_mindspore" ranks >/dev/null
  PATH=$VENV/bin:$PATH "${start_two[@]}" ranks-theirs "$here/ranks.py" >/dev/null
  floor compare ranks ranks-ours ranks-theirs
  start resnet50 8
  mkdir -p two-ours two-theirs
  PATH=$VENV/bin:$PATH "${start_two[@]}" two-ours/logs "$here/exec.py" "$build/bin/bench_mindspore" train "$here/resnet50.yaml" \
    "$PWD/resnet50.ckpt" "$PWD/resnet50-batches" 4 0.001 "$PWD/two-ours" >/dev/null
  PATH=$VENV/bin:$PATH "${start_two[@]}" two-theirs/logs "$here/peer.py" train "$here/resnet50.yaml" \
    "$PWD/resnet50.ckpt" "$PWD/resnet50-batches" 4 0.001 "$PWD/two-theirs" >/dev/null
  floor compare two two-ours/logs two-theirs/logs
}

curves() {
  start crnn_vgg7 8
  both crnn_vgg7 "$STEPS" "-curve"
  "$VENV/bin/python" "$here/curves.py" "$PICTURE" "CRNN VGG7, $STEPS steps" crnn_vgg7-{ours,theirs}-curve/log.txt
  floor compare curves crnn_vgg7-{ours,theirs}-curve
}

for part in $PARTS; do
  case $part in
    gradients)
      gradients resnet50 exact 0.05
      gradients db_r18 float32-maps 0.01
      ;;
    scores)
      scores crnn_vgg7
      scores db_r18
      scores resnet50 scheduler.num_epochs=1
      ;;
    ranks | curves) $part ;;
    *)
      echo "compare.sh: error: '$part' is no part (gradients, scores, ranks, curves)" >&2
      exit 2
      ;;
  esac
done
exit $missed
