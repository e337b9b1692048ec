# The program under test: the trainer, with five steps of a CIFAR-10 configuration.
# shellcheck shell=bash
#
#   trainer NAME              TRAIN becomes the command of one rank; results go to $SHARED/runs/NAME
#   same_weights NAME RANKS   all ranks ended with the weights that `lockstep run` on one host gives
#   shows_progress NAME COMMAND...  under COMMAND, which gives ranks pipes, training shows how far it is

trainer() { # NAME
  TRAIN=("$BIN/lockstep" train --config "$ROOT/configs/cls/resnet/resnet18_cifar10.yaml" -o
    "train.ckpt_save_dir=$SHARED/runs/$1" "train.dataset.data_dir=$SHARED/data" "eval.dataset.data_dir=$SHARED/data"
    "train.max_steps=${STEPS:-5}" train.loader.batch_size=2 system.val_while_train=False system.log_interval=1
    "parallel.virtual_ranks=${VIRTUAL_RANKS:-4}" parallel.threads=1)
}

training_data() {
  "$BIN/lockstep" data cifar10 --generate --records 200 --dir "$SHARED/data" >/dev/null 2>&1
}

digest() { sha256sum <"$SHARED/runs/$1/latest/model.safetensors"; }
same_weights() { # NAME RANKS
  local reference=reference-$2-${STEPS:-5}
  grep -Eq "step: \[${STEPS:-5}/" "$SHARED/runs/$1/log_0.txt" || fail "not ${STEPS:-5} steps in $SHARED/runs/$1/log_0.txt"
  grep -Eq "Weights: [0-9a-f]{16} on all $2 ranks" "$SHARED/runs/$1/log_0.txt" || fail "weights differ: $(grep Weights "$SHARED/runs/$1/log_0.txt")"
  [ -e "$SHARED/runs/$reference" ] || train_reference "$reference" "$2"
  [ "$(digest "$1")" = "$(digest "$reference")" ] || fail "other weights than those of lockstep run on one host"
}
train_reference() { # NAME RANKS
  trainer "$1"
  "$BIN/lockstep" run --nproc_per_node "$2" -- "${TRAIN[@]}" >"$SHARED/log/$1" 2>&1 || fail "$(cat "$SHARED/log/$1")"
}

# Whole lines, the first 5 s after the first step, then one every 30 s. How many steps take that long
# depends on the machine.
shows_progress() { # NAME COMMAND...
  local steps begun took lines line='^epoch [0-9]+/1000 .* [0-9]+%  [0-9]+/[0-9]+  loss [0-9.]+ .*ETA [0-9:]+'
  for steps in 25 100 400 1600 6400; do
    STEPS=$steps trainer "$1_progress_$steps"
    begun=$SECONDS
    within 300 0 "${@:2}" "${TRAIN[@]}" scheduler.num_epochs=1000
    took=$((SECONDS - begun))
    lines=$(grep -aEc -- "$line" "$OUTPUT" || true)
    [ "$lines" = 0 ] || break
  done
  says "$line"
  [ "$lines" -le $((1 + took / 30)) ] || fail "$lines lines of progress in $took s"
  ! grep -aq $'\x1b' "$OUTPUT" || fail "control sequences, and no terminal"
}
