#!/usr/bin/env bash
# MindSpore and MindOCR beside Lockstep, from nothing: makes a Python with both, draws data, trains,
# and compares losses, gradients, scores, two ranks, launchers, 100 steps and speed. Ends with 1 if a
# floor is missed.
#
#   bench/peers/mindspore/compare.sh [BUILD_DIR]        (default build/release)
#
# WORK        folder for all files (a temporary one, which is removed at the end); in one that exists,
#             what has been computed is not computed again
# VENV        Python with requirements.txt and MindOCR; made if it does not exist ($WORK/venv)
# PYTHON      makes VENV (python3.11)
# TORCH_PYTHON  has PyTorch, NumPy and YAML, for float64.py (/usr/bin/python3)
# DATA_PATH   has det/train, det/test and rec/train with images/ and det_gt.txt or rec_gt.txt (drawn)
# CIFAR_PATH  CIFAR-10's binary files (synthetic ones are drawn)
# PARTS       some of "gradients tutorial scores ranks mpirun ranktable curves speed" (all)
# STEPS       of the curves (100); PICTURE is their file ($WORK/curves.svg)
# NETWORKS    of the scores, the curves and the speed of steps (resnet50 db_r18 crnn_vgg7)
# ROUNDS      of the speed (5), after one that does not count; THREADS are the numbers of threads (1 2)
# LIMIT       seconds for one program (3600)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=$(cd "${1:-$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}}" && pwd)
if [ -z "${WORK:-}" ]; then
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"
WORK=$(cd "$WORK" && pwd)
VENV=${VENV:-$WORK/venv} PYTHON=${PYTHON:-python3.11} TORCH_PYTHON=${TORCH_PYTHON:-/usr/bin/python3}
PARTS=${PARTS:-gradients tutorial scores ranks mpirun ranktable curves speed}
STEPS=${STEPS:-100} PICTURE=${PICTURE:-$WORK/curves.svg} ROUNDS=${ROUNDS:-5} THREADS=${THREADS:-1 2} LIMIT=${LIMIT:-3600}
NETWORKS=${NETWORKS:-resnet50 db_r18 crnn_vgg7}
export OMP_NUM_THREADS=1 GLOG_v=3
cd "$WORK"

if [ ! -x "$VENV/bin/python" ]; then
  "$PYTHON" -m venv "$VENV"
  "$VENV/bin/pip" install -q -r "$here/requirements.txt"
  "$VENV/bin/pip" install -q --no-deps mindocr==0.5.0
fi
drawn() { # FOLDER OPTION ...: a folder of drawn pictures with text, once
  [ -d "$1" ] || "$build/bin/lockstep" data synth-ocr "${@:2}" -o "$1" >/dev/null
}
drawn_cifar10() { # FOLDER RECORDS
  [ -d "$1" ] || "$build/bin/lockstep" data cifar10 --generate --records "$2" --dir "$1" >/dev/null
}
if [ -z "${DATA_PATH:-}" ]; then
  DATA_PATH=$WORK/drawn
  drawn "$DATA_PATH" --det 4 --rec 1200 --test_share 1 --size 160x160 --difficulty easy
fi
if [ -z "${CIFAR_PATH:-}" ]; then
  CIFAR_PATH=$WORK/cifar10
  drawn_cifar10 "$CIFAR_PATH" 500
fi
# The CRNN learns half of 64 short words without doubled letters, which are the easy ones for CTC.
WORDS=$WORK/words.txt
grep -m 64 -iP '\t(?!.*(.)\1)[0-9a-z]{3,4}$' "$DATA_PATH/rec/train/rec_gt.txt" >"$WORDS"
export DATA_PATH CIFAR_PATH WORDS

ours() { timeout "$LIMIT" "$build/bin/bench_mindspore" "$@"; }
theirs() { timeout "$LIMIT" "$VENV/bin/python" "$here/peer.py" "$@"; }
lockstep_train() { timeout "$LIMIT" "$build/bin/lockstep-train" "$@"; }
compare() { "$VENV/bin/python" "$here/compare.py" "$@"; }
missed=0
floor() { # a floor: runs its command, and remembers whether it failed
  "$@" || missed=1
}

# Fresh weights and batches of one of the configurations, once: NAME.ckpt, NAME-batches$3.
start() { # NAME COUNT [SUFFIX]
  local batches=$1-batches${3:-}
  [ -d "$batches" ] || ours batches "$here/$1.yaml" "$2" "$batches"
  [ -f "$1.ckpt" ] || theirs init "$here/$1.yaml" "$1.ckpt"
}

trained() { # PROGRAM FOLDER ARGUMENT ...: its training, once; a finished log ends with the time of a step
  local log=$2/log.txt
  mkdir -p "$2"
  if [ ! -f "$log" ] || ! grep -q '^ms ' "$log"; then "$1" "${@:3}" >"$log"; fi
}

both() { # NAME STEPS SUFFIX: NAME-ours$3 and NAME-theirs$3, from NAME.ckpt
  local program
  for program in ours theirs; do
    trained $program "$1-$program$3" train "$here/$1.yaml" "$1.ckpt" "$1-batches$3" "$2" 0.001 "$1-$program$3"
  done
}

gradients() { # NAME MODE LIMIT: also against float64.py's MODE
  start "$1" 8
  both "$1" 1 ""
  "$TORCH_PYTHON" "$here/float64.py" "$2" "$here/$1.yaml" "$1.safetensors" "$1-batches/batch_0.safetensors" "$1-$2" >/dev/null
  floor compare first "$1" "$1-ours" "$1-theirs" "$1-$2" "$3"
}

# The network of MindSpore's tutorial, which float64.py does not have: Lockstep's float64 is the truth.
tutorial() {
  local network="model.backbone.stem=mindspore"
  local rest=("$here/resnet50.yaml" tutorial.ckpt resnet50-batches 1 0.001)
  start resnet50 8
  [ -f tutorial.ckpt ] || theirs init "$here/resnet50.yaml" tutorial.ckpt "$network"
  trained ours tutorial-ours train "${rest[@]}" tutorial-ours "$network"
  trained theirs tutorial-theirs train "${rest[@]}" tutorial-theirs "$network"
  trained ours tutorial-exact train64 "${rest[@]}" tutorial-exact "$network"
  floor compare first tutorial tutorial-{ours,theirs,exact} 0.05
}

performance() { # LOG: its line of scores
  grep -o "Performance: {.*}" "$1" | tail -n 1
}

# Lockstep trains; its .ckpt and the one of MindSpore after two more steps are evaluated by both.
scores() { # NAME [KEY=VALUE ...]
  local name=$1 folder=$1-run weights side
  start "$name" 8
  [ -f "$folder/best.ckpt" ] || lockstep_train -c "$here/$name.yaml" -o train.ckpt_save_dir="$folder" parallel.threads=1 "${@:2}" >"$name-train.log"
  trained theirs "$name-more" train "$here/$name.yaml" "$folder/best.ckpt" "$name-batches" 2 0.0001 "$name-more"
  for weights in "$folder/best.ckpt" "$name-more/trained.ckpt"; do
    lockstep_train -c "$here/$name.yaml" --eval -o train.ckpt_save_dir="$name-eval" parallel.threads=1 \
      eval.ckpt_load_path="$PWD/$weights" >"$name-eval-ours.log"
    theirs eval "$here/$name.yaml" "$weights" >"$name-eval-theirs.log" 2>&1
    for side in ours theirs; do
      echo "$name $weights $side $(performance "$name-eval-$side.log")"
    done
    floor compare scores "$name-eval-ours.log" "$name-eval-theirs.log"
  done
}

# A program on two processes; FOLDER/worker_*.log have their outputs.
by_msrun() { # FOLDER PROGRAM.py ARGUMENT ...
  PATH=$VENV/bin:$PATH timeout "$LIMIT" "$VENV/bin/msrun" --worker_num 2 --local_worker_num 2 --join True --log_dir "$@" >/dev/null
}
by_mpirun() { # FOLDER PROGRAM ARGUMENT ...
  mkdir -p "$1"
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout "$LIMIT" mpirun --oversubscribe --bind-to none -n 2 \
    bash -c 'exec "${@:2}" >"$1/worker_$OMPI_COMM_WORLD_RANK.log" 2>&1' _ "$@"
}
by_ranktable() { # FOLDER PROGRAM ARGUMENT ...
  local rank
  mkdir -p "$1"
  [ -f hccl_1s_2p.json ] || "$build/bin/lockstep" ranktable --hosts 127.0.0.1:2 >/dev/null
  for rank in 0 1; do
    RANK_TABLE_FILE=$PWD/hccl_1s_2p.json RANK_SIZE=2 RANK_ID=$rank DEVICE_ID=$rank timeout "$LIMIT" "${@:2}" >"$1/worker_$rank.log" 2>&1 &
  done
  wait -n && wait -n
}

# The calls of a group, and the losses of data parallel: MindSpore under msrun.
msrun_theirs() {
  [ -d ranks-theirs ] || by_msrun ranks-theirs "$here/ranks.py"
  start resnet50 8
  [ -d two-theirs ] || {
    mkdir two-theirs
    by_msrun two-theirs/logs "$here/peer.py" "${two_steps[@]}" "$PWD/two-theirs"
  }
}
two_steps=(train "$here/resnet50.yaml" "$WORK/resnet50.ckpt" "$WORK/resnet50-batches" 2 0.001)

# Lockstep under the launcher FUNCTION, with words between it and our program, beside MindSpore under msrun.
launched() { # FUNCTION [WORD ...]
  local by=$1
  shift
  msrun_theirs
  "$by" "ranks-ours-$by" "$@" "$build/bin/bench_mindspore" ranks
  floor compare ranks "ranks-ours-$by" ranks-theirs
  mkdir -p "two-ours-$by"
  "$by" "two-ours-$by/logs" "$@" "$build/bin/bench_mindspore" "${two_steps[@]}" "$PWD/two-ours-$by"
  floor compare two "two-ours-$by/logs" two-theirs/logs
  echo "$by: $(cksum <"two-ours-$by/trained.ckpt") are checksum and bytes of the weights"
}

# MindSpore under Open MPI, with its own scheduler beside it: without one its init() ends with an error on
# processors ("Failed to initialize communication library on device side").
mpirun_theirs() {
  local folder=ranks-theirs-by_mpirun port
  port=$("$VENV/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  (
    export MS_WORKER_NUM=2 MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=$port
    mkdir -p "$folder"
    MS_ROLE=MS_SCHED timeout "$LIMIT" "$VENV/bin/python" "$here/ranks.py" >"$folder/scheduler.log" 2>&1 &
    MS_ROLE=MS_WORKER by_mpirun "$folder" "$VENV/bin/python" "$here/ranks.py"
    wait
  )
  floor compare ranks ranks-ours-by_mpirun "$folder"
}

# Small pictures and batches: MindSpore takes seconds for a step on a processor. Those of ResNet-50 stay:
# with 4 pictures of 32 pixels, rounding alone changes its first loss by 4e-4.
curves() {
  local name panels=()
  local -x SIDE=96 BATCH
  for name in $NETWORKS; do
    [ "$name" = resnet50 ] && BATCH=8 || BATCH=4
    start "$name" 8 -curve
    both "$name" "$STEPS" -curve
    compare disturb "$name.safetensors" "$name-noisy.safetensors"
    trained ours "$name-noisy-curve" train "$here/$name.yaml" "$name-noisy.safetensors" "$name-batches-curve" "$STEPS" 0.001 \
      "$name-noisy-curve"
    floor compare curves "$name" "$name"-{ours,theirs,noisy}-curve
    panels+=("${titles[$name]}" "$name"-{ours,theirs,noisy}-curve)
  done
  "$VENV/bin/python" "$here/curves.py" "$PICTURE" "${panels[@]}"
}
declare -A titles=([resnet50]="ResNet-50" [db_r18]="DBNet R18" [crnn_vgg7]="CRNN VGG7")

row() { # TITLE THREADS COUNT step|pipeline CONFIG ARGUMENT ...
  "$VENV/bin/python" "$here/speed.py" "$1" "$2" "$3" "$ROUNDS" "$build/bin/bench_mindspore" "${@:4}" -- \
    "$VENV/bin/python" "$here/peer.py" "${@:4}" 2>>speed.log
}

# Training steps of the batches above, and data pipelines of the usual sizes, from files to batches.
speed() {
  local threads name loader
  drawn large --det 16 --rec 1 --size 1280x720
  drawn_cifar10 cifar10-full 50000
  echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
  echo "| | threads | Lockstep, images/s | MindSpore, images/s | ratio |"
  echo "|---|---|---|---|---|"
  for threads in $THREADS; do
    for name in $NETWORKS; do
      start "$name" 8
      row "${titles[$name]}, step" "$threads" 4 step "$here/$name.yaml" "$name.ckpt" "$name-batches" system.mode=0
    done
    loader=(train.loader.num_workers="$threads" train.loader.prefetch_size=4)
    CIFAR_PATH=$PWD/cifar10-full PIXELS=224 row "CIFAR-10 at 224x224, pipeline" "$threads" 60 pipeline "$here/resnet50.yaml" "${loader[@]}"
    DATA_PATH=$PWD/large SIDE=640 row "scenes at 640x640, pipeline" "$threads" 12 pipeline "$here/db_r18.yaml" "${loader[@]}"
    row "words at 32x40, pipeline" "$threads" 100 pipeline "$here/crnn_vgg7.yaml" "${loader[@]}"
  done
  echo "load after: $(cut -d' ' -f1-3 /proc/loadavg)"
}

for part in $PARTS; do
  case $part in
    gradients)
      gradients resnet50 exact 0.05
      gradients db_r18 float32-maps 0.01
      ;;
    scores)
      for name in $NETWORKS; do
        # The text networks learn by heart; a ResNet-50 would take too long on a processor.
        [ "$name" = resnet50 ] && less=(scheduler.num_epochs=2 train.dataset.sample_ratio=0.2) || less=()
        scores "$name" "${less[@]}"
      done
      ;;
    ranks) launched by_msrun "$here/exec.py" ;;
    mpirun)
      launched by_mpirun
      mpirun_theirs
      ;;
    ranktable) launched by_ranktable ;;
    tutorial | curves | speed) "$part" ;;
    *)
      echo "compare.sh: error: '$part' is no part (gradients, tutorial, scores, ranks, mpirun, ranktable, curves, speed)" >&2
      exit 2
      ;;
  esac
done
exit $missed
