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
# NETWORKS    of gradients, scores, curves and the speed of steps (resnet50 db_r18 crnn_vgg7
#             crnn_resnet34; curves and speed leave out the last)
# STEPS       of the curves (100); PICTURE is their file ($WORK/curves.svg)
# ROUNDS      of the speed (5), after those that do not count; THREADS are the numbers of threads (1 2)
# JOBS        programs at once where nothing is timed (one more than cores)
# LIMIT       seconds for one program (3600)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
source "$root/scripts/lib.sh"
source "$here/progress.sh"
build=$(cd "${1:-$root/$release}" && pwd)
trap 'end_spawned; stop_reporting; [ ${#scratch[@]} = 0 ] || rm -rf "${scratch[@]}"' EXIT
if [ -z "${WORK:-}" ]; then
  WORK=$(mktemp -d)
  scratch+=("$WORK")
fi
mkdir -p "$WORK"
WORK=$(cd "$WORK" && pwd)
running=$(mktemp -d)
VENV=${VENV:-$WORK/venv} PYTHON=${PYTHON:-python3.11} TORCH_PYTHON=${TORCH_PYTHON:-/usr/bin/python3}
PARTS=${PARTS:-gradients tutorial scores ranks mpirun ranktable curves speed}
STEPS=${STEPS:-100} PICTURE=${PICTURE:-$WORK/curves.svg} ROUNDS=${ROUNDS:-5} THREADS=${THREADS:-1 2}
JOBS=${JOBS:-$(($("$root/scripts/cores.sh") + 1))} LIMIT=${LIMIT:-3600}
quick=${NETWORKS:-resnet50 db_r18 crnn_vgg7}
NETWORKS=${NETWORKS:-$quick crnn_resnet34}
declare -A titles=([resnet50]="ResNet-50" [db_r18]="DBNet R18" [crnn_vgg7]="CRNN VGG7" [crnn_resnet34]="CRNN ResNet-34")
allowed() { # VARIABLE WORDS ...: its value consists of these
  local word
  for word in ${!1}; do
    [[ " ${*:2} " == *" $word "* ]] && continue
    echo "compare.sh: error: $1 has '$word'; allowed: ${*:2}" >&2
    exit 2
  done
}
allowed NETWORKS resnet50 db_r18 crnn_vgg7 crnn_resnet34
allowed PARTS gradients tutorial scores ranks mpirun ranktable curves speed
export OMP_NUM_THREADS=1 GLOG_v=3
cd "$WORK"

if [ ! -x "$VENV/bin/python" ]; then
  part=venv
  tell "is made in $VENV"
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
# The CRNNs learn half of 64 short words without doubled letters, which are the easy ones for CTC.
WORDS=$WORK/words.txt
grep -m 64 -iP '\t(?!.*(.)\1)[0-9a-z]{3,4}$' "$DATA_PATH/rec/train/rec_gt.txt" >"$WORDS"
export DATA_PATH CIFAR_PATH WORDS

ours() { timeout "$LIMIT" "$build/bin/bench_mindspore" "$@"; }
theirs() { timeout "$LIMIT" "$VENV/bin/python" "$here/peer.py" "$@"; }
third() { timeout "$LIMIT" "$TORCH_PYTHON" "$here/float64.py" "$@"; }
lockstep_train() { timeout "$LIMIT" "$build/bin/lockstep-train" "$@"; }
compare() { "$VENV/bin/python" "$here/compare.py" "$@"; }
declare -A programs=([ours]="Lockstep" [theirs]="MindSpore")
missed=0
floor() { # a floor: runs its command, and remembers whether it failed
  clear_line
  "$@" || missed=1
}
logged() { # LOG COMMAND ...: also what it says of itself, as LOG with .err
  "${@:2}" >"$1" 2>"${1%.*}.err" || {
    local code=$?
    tail -n 5 "${1%.*}.err" >&2
    return "$code"
  }
}

# Fresh weights and batches of one of the configurations, once: NAME.ckpt, NAME-batches$3.
start() { # NAME COUNT [SUFFIX]
  local batches=$1-batches${3:-}
  [ -d "$batches" ] || ours batches "$here/$1.yaml" "$2" "$batches"
  [ -f "$1.ckpt" ] || task "${titles[$1]}: weights of MindSpore" "" "" logged "$1-init.log" theirs init "$here/$1.yaml" "$1.ckpt"
}

# trained PROGRAM FOLDER train|train64 CONFIG WEIGHTS BATCHES STEPS ...: its training, once. A finished
# log ends with the time of a step.
trained() {
  local log=$2/log.txt name
  name=$(basename "$4" .yaml)
  mkdir -p "$2"
  if [ ! -f "$log" ] || ! grep -q '^ms ' "$log"; then
    task "${titles[$name]}: ${programs[$1]}${3#train}" "$log" "$7" logged "$log" "$1" "${@:3}"
  fi
}

both() { # NAME STEPS SUFFIX: NAME-ours$3 and NAME-theirs$3, from NAME.ckpt
  local program
  for program in theirs ours; do
    spawn trained $program "$1-$program$3" train "$here/$1.yaml" "$1.ckpt" "$1-batches$3" "$2" 0.001 "$1-$program$3"
  done
}

# In float64: two networks have a program without Lockstep.
in_float64() { # NAME: NAME-exact
  local mode=exact
  case $1 in
    crnn*) spawn trained ours "$1-exact" train64 "$here/$1.yaml" "$1.ckpt" "$1-batches" 1 0.001 "$1-exact" ;;
    *)
      [ "$1" = resnet50 ] || mode=float32-maps
      [ -f "$1-exact/log.txt" ] || spawn task "${titles[$1]}: PyTorch in float64" "" "" logged "$1-exact.log" third "$mode" "$here/$1.yaml" "$1.safetensors" \
        "$1-batches/batch_0.safetensors" "$1-exact"
      ;;
  esac
}

# The limits are of the median distance to float64. The CRNN with VGG-7 needs none.
gradients() {
  local name
  local -A limits=([resnet50]=0.05 [db_r18]=0.01 [crnn_resnet34]=0.02)
  for name in $NETWORKS; do spawn start "$name" 8; done
  gather
  for name in $NETWORKS; do
    both "$name" 1 ""
    in_float64 "$name"
  done
  gather
  for name in $NETWORKS; do
    floor compare first "${titles[$name]}" "$name"-{ours,theirs,exact} ${limits[$name]:-}
  done
}

# The network of MindSpore's tutorial, which float64.py does not have: Lockstep's float64 is the truth.
tutorial() {
  local network="model.backbone.stem=mindspore" side
  local rest=("$here/resnet50.yaml" tutorial.ckpt resnet50-batches 1 0.001)
  start resnet50 8
  [ -f tutorial.ckpt ] || logged tutorial-init.log theirs init "$here/resnet50.yaml" tutorial.ckpt "$network"
  for side in theirs ours; do
    spawn trained $side tutorial-$side train "${rest[@]}" tutorial-$side "$network"
  done
  spawn trained ours tutorial-exact train64 "${rest[@]}" tutorial-exact "$network"
  gather
  floor compare first tutorial tutorial-{ours,theirs,exact} 0.05
}

performance() { # LOG: its line of scores
  grep -o "Performance: {.*}" "$1" | tail -n 1
}

learn() { # NAME [KEY=VALUE ...]: Lockstep trains, NAME-run/best.ckpt
  [ -f "$1-run/best.ckpt" ] || task "${titles[$1]}: Lockstep learns" "" "" logged "$1-train.log" lockstep_train -c "$here/$1.yaml" \
    -o train.ckpt_save_dir="$1-run" parallel.threads=1 "${@:2}"
}

evaluated() { # NAME WEIGHTS: NAME-eval-ours.log and NAME-eval-theirs.log
  spawn task "${titles[$1]}: Lockstep evaluates" "" "" logged "$1-eval-ours.log" lockstep_train -c "$here/$1.yaml" --eval \
    -o train.ckpt_save_dir="$1-eval" parallel.threads=1 eval.ckpt_load_path="$PWD/$2"
  spawn task "${titles[$1]}: MindSpore evaluates" "" "" logged "$1-eval-theirs.log" theirs eval "$here/$1.yaml" "$2"
  gather
}

# Lockstep trains; its .ckpt and the one of MindSpore after one more step are evaluated by both. Few
# pictures: the text networks learn 4 words of 8 or 4 scenes by heart. A ResNet-50 that has learned would
# take too long on a processor.
scores() {
  local name weights side less
  local -x WORDS=$WORK/few_words.txt BATCH=4
  head -n 8 "$WORK/words.txt" >"$WORDS"
  for name in $NETWORKS; do
    less=()
    [ "$name" != resnet50 ] || less=(scheduler.num_epochs=2 train.dataset.sample_ratio=0.2 system.val_while_train=True)
    spawn learn "$name" "${less[@]}"
  done
  for name in $NETWORKS; do spawn start "$name" 1 -scores; done
  gather
  for name in $NETWORKS; do
    spawn trained theirs "$name-more" train "$here/$name.yaml" "$name-run/best.ckpt" "$name-batches-scores" 1 0.0001 "$name-more"
  done
  gather
  for name in $NETWORKS; do
    for weights in "$name-run/best.ckpt" "$name-more/trained.ckpt"; do
      evaluated "$name" "$weights"
      clear_line
      for side in ours theirs; do
        echo "$name $weights $side $(performance "$name-eval-$side.log")"
      done
      floor compare scores "$name-eval-ours.log" "$name-eval-theirs.log"
    done
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
  local rank workers=()
  mkdir -p "$1"
  [ -f hccl_1s_2p.json ] || "$build/bin/lockstep" ranktable --hosts 127.0.0.1:2 >/dev/null
  for rank in 0 1; do
    RANK_TABLE_FILE=$PWD/hccl_1s_2p.json RANK_SIZE=2 RANK_ID=$rank DEVICE_ID=$rank timeout "$LIMIT" "${@:2}" >"$1/worker_$rank.log" 2>&1 &
    workers+=($!)
  done
  wait "${workers[0]}" && wait "${workers[1]}"
}

# The calls of a group, and the losses of data parallel: MindSpore under msrun.
msrun_theirs() {
  [ -d ranks-theirs ] || task "group: MindSpore under msrun" "" "" by_msrun ranks-theirs "$here/ranks.py"
  start resnet50 8
  [ -d two-theirs ] || {
    mkdir two-theirs
    task "two ranks: MindSpore under msrun" "" "" by_msrun two-theirs/logs "$here/peer.py" "${two_steps[@]}" "$PWD/two-theirs"
  }
}
two_steps=(train "$here/resnet50.yaml" "$WORK/resnet50.ckpt" "$WORK/resnet50-batches" 2 0.001)

# Lockstep under the launcher FUNCTION, with words between it and our program, beside MindSpore under msrun.
launched() { # FUNCTION [WORD ...]
  local by=$1
  shift
  msrun_theirs
  task "group: Lockstep $by" "" "" "$by" "ranks-ours-$by" "$@" "$build/bin/bench_mindspore" ranks
  floor compare ranks "ranks-ours-$by" ranks-theirs
  mkdir -p "two-ours-$by"
  task "two ranks: Lockstep $by" "" "" "$by" "two-ours-$by/logs" "$@" "$build/bin/bench_mindspore" "${two_steps[@]}" "$PWD/two-ours-$by"
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

# Small pictures and batches, for processors. Those of ResNet-50 stay: with 4 pictures of 32 pixels, rounding
# alone changes its first loss by 4e-4.
curves() {
  local name weights panels=()
  local -x SIDE=96 BATCH
  local -A pictures=([resnet50]=8 [db_r18]=4 [crnn_vgg7]=4 [crnn_resnet34]=2)
  for name in $quick; do
    BATCH=${pictures[$name]} spawn start "$name" 8 -curve
  done
  gather
  for name in $quick; do
    spawn trained theirs "$name-theirs-curve" train "$here/$name.yaml" "$name.ckpt" "$name-batches-curve" "$STEPS" 0.001 "$name-theirs-curve"
  done
  for name in $quick; do
    compare disturb "$name.safetensors" "$name-noisy.safetensors"
    for weights in "$name.ckpt" "$name-noisy.safetensors"; do
      set -- "$name-ours-curve"
      [ "$weights" = "$name.ckpt" ] || set -- "$name-noisy-curve"
      spawn trained ours "$1" train "$here/$name.yaml" "$weights" "$name-batches-curve" "$STEPS" 0.001 "$1"
    done
  done
  gather
  for name in $quick; do
    floor compare curves "${titles[$name]}" "$name"-{ours,theirs,noisy}-curve
    panels+=("${titles[$name]}" "$name"-{ours,theirs,noisy}-curve)
  done
  "$VENV/bin/python" "$here/curves.py" "$PICTURE" "${panels[@]}"
  tell "$PICTURE is drawn"
}

# row TITLE THREADS COUNT SECONDS step|pipeline CONFIG ARGUMENT ...: see speed.py. A row that cannot be
# measured leaves the others.
row() {
  local cells
  if cells=$(task "$1, $2 threads" "" "" "$VENV/bin/python" "$here/speed.py" "${@:1:4}" "$ROUNDS" \
    "$build/bin/bench_mindspore" "${@:5}" -- "$VENV/bin/python" "$here/peer.py" "${@:5}" 2>>speed.err); then
    clear_line
    echo "$cells"
  else
    missed=1
    tell "'$1' of $2 threads was not measured: $(grep "^speed.py: error" speed.err | tail -n 1)"
  fi
}

# Data pipelines of the usual sizes, from files to batches, then training steps of the batches above.
# CIFAR-10 has 50,000 records, fewer of which MindSpore's reader refuses.
speed() {
  local threads name loader
  drawn large --det 40 --rec 1 --size 1280x720
  drawn_cifar10 cifar10-full 50000
  for name in $quick; do start "$name" 8; done
  clear_line
  echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
  echo "| | threads | Lockstep, images/s | MindSpore, images/s | ratio |"
  echo "|---|---|---|---|---|"
  for threads in $THREADS; do
    loader=(train.loader.num_workers="$threads" train.loader.prefetch_size=4)
    CIFAR_PATH=$PWD/cifar10-full PIXELS=224 row "CIFAR-10 at 224x224, pipeline" "$threads" 60 0 pipeline "$here/resnet50.yaml" "${loader[@]}"
    DATA_PATH=$PWD/large SIDE=640 row "scenes at 640x640, pipeline" "$threads" 8 0 pipeline "$here/db_r18.yaml" "${loader[@]}"
    WORDS=$DATA_PATH/rec/train/rec_gt.txt BATCH=16 row "words at 32x40, pipeline" "$threads" 60 0 pipeline "$here/crnn_vgg7.yaml" \
      "${loader[@]}" train.dataset.sample_ratio=1.0
    for name in $quick; do
      row "${titles[$name]}, step" "$threads" 20 3 step "$here/$name.yaml" "$name.ckpt" "$name-batches" system.mode=0
    done
  done
  echo "load after: $(cut -d' ' -f1-3 /proc/loadavg)"
}

failed=0
for part in $PARTS; do
  begin_part "$part"
  missed=0
  case $part in
    gradients | tutorial | scores | curves | speed) "$part" ;;
    ranks) launched by_msrun "$here/exec.py" ;;
    mpirun)
      launched by_mpirun
      mpirun_theirs
      ;;
    ranktable) launched by_ranktable ;;
  esac
  if [ "$missed" = 0 ]; then
    end_part "is done"
  else
    end_part "MISSED a floor or a row,"
    failed=1
  fi
done
exit $failed
