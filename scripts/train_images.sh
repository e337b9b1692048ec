#!/usr/bin/env bash
# Trains ResNet-18 on a folder of pictures, with $NPROC processes: `make train-images FOLDER=folder`.
# The settings are chosen from the pictures and written to runs/NAME.yaml; a file that is there is
# used as it is. The results are in runs/NAME. STEPS=n ends after n steps. NETWORK=name takes a network
# of the zoo (`lockstep train --list networks`) in the place of ResNet-18.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
bin=$release/bin
[ -n "${FOLDER:-}" ] ||
  fail train-images "FOLDER= is missing: a folder with a sub-folder of pictures for each class"
[ -d "$FOLDER" ] || fail train-images "no folder $FOLDER"
[ ! -e runs ] || [ -w runs ] ||
  fail train-images "$PWD/runs belongs to $(stat -c %U runs), and $(id -un) cannot write it: remove it, or run in a clone of your own"
recipe=runs/$(basename "$(realpath "$FOLDER")").yaml
if [ -e "$recipe" ]; then
  echo "Configuration: $recipe, as it is; remove it to have one chosen anew"
else
  "$bin/lockstep" data images "$FOLDER" -o "$recipe" ${NETWORK:+--network "$NETWORK"}
fi
exec "$bin/lockstep" run --nproc_per_node "${NPROC:-2}" -- "$bin/lockstep" train --config "$recipe" \
  ${STEPS:+-o train.max_steps="$STEPS"}
