#!/bin/bash
# What decoding at reduced size (`reduced_decoding: True`) does to a network's accuracy: ResNet-18 on
# 64 pixels learns whether a part of a photograph has text. The parts have 256 pixels, so that all
# are decoded at half their size. Each network is evaluated on both kinds of pixels.
#
#   LOCKSTEP_TEST_DATA=folder bench/data/reduced_accuracy.sh [BUILD_DIR]   (default build/release)
#
# SEEDS   of the trainings ("1 2 3"), of EPOCHS each (8)
# PYTHON  with the pillow of bench/data/requirements.txt (python3)
# WORK    folder that is kept (a temporary one, which is removed)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
lockstep=$(cd "${1:-$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}}" && pwd)/bin/lockstep
SEEDS=${SEEDS:-1 2 3} EPOCHS=${EPOCHS:-8} PYTHON=${PYTHON:-python3}
photos=${LOCKSTEP_TEST_DATA:-}/ocr_det
[ -f "$photos/train.zip" ] || {
  echo "reduced_accuracy.sh: error: LOCKSTEP_TEST_DATA has no ocr_det/train.zip" >&2
  exit 2
}
if [ -z "${WORK:-}" ]; then
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
fi
mkdir -p "$WORK"
"$PYTHON" "$root/bench/data/text_patches.py" "$LOCKSTEP_TEST_DATA" "$WORK/patches"
"$lockstep" data images "$WORK/patches" -o "$WORK/recipe.yaml" >"$WORK/images.log"

common=(-o train.dataset.transform_pipeline='[{RandomResizedCrop: {size: 64, scale: [0.35, 1]}}, {NormalizeImage: }]'
  -o eval.dataset.transform_pipeline='[{Resize: {size: 72}}, {CenterCrop: {size: 64}}, {NormalizeImage: }]'
  -o parallel.threads=1 -o scheduler.num_epochs="$EPOCHS" -o train.loader.batch_size=32 -o scheduler.lr=0.05)

# accuracy_of LOG: the last accuracy that it has
accuracy_of() { sed -n "s/.*Performance: {'acc': \([0-9.]*\).*/\1/p" "$1" | tail -1; }

: >"$WORK/rows"
for seed in $SEEDS; do
  for trained in False True; do
    results=$WORK/$seed-$trained
    "$lockstep" train -c "$WORK/recipe.yaml" "${common[@]}" -o system.seed="$seed" \
      -o train.dataset.reduced_decoding=$trained -o eval.dataset.reduced_decoding=$trained \
      -o train.ckpt_save_dir="$results" >"$results.log" 2>&1
    for evaluated in False True; do
      "$lockstep" eval -c "$WORK/recipe.yaml" "${common[@]}" \
        -o eval.dataset.reduced_decoding=$evaluated -o eval.ckpt_load_path="$results/latest" \
        >"$results-$evaluated.log" 2>&1
      echo "$seed,$trained,$evaluated,$(accuracy_of "$results-$evaluated.log")" | tee -a "$WORK/rows"
    done
  done
done

echo
echo "accuracy over the seeds: mean, least and greatest"
awk -F, '
  { kind = ($2 == "True" ? "reduced" : "full") " " ($3 == "True" ? "reduced" : "full")
    sum[kind] += $4; ++count[kind]
    if (!(kind in least) || $4 < least[kind]) least[kind] = $4
    if ($4 > most[kind]) most[kind] = $4 }
  END {
    printf "%-8s  %-9s  %6s  %6s  %6s\n", "trained", "evaluated", "mean", "least", "most"
    for (t = 0; t < 2; ++t) for (e = 0; e < 2; ++e) {
      kind = (t ? "reduced" : "full") " " (e ? "reduced" : "full")
      printf "%-8s  %-9s  %6.4f  %6.4f  %6.4f\n", t ? "reduced" : "full", e ? "reduced" : "full",
        sum[kind] / count[kind], least[kind], most[kind]
    }
  }' "$WORK/rows"
