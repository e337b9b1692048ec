#!/bin/bash
# Batches of pictures in files, made by one core: images a second of CPU time, here and by PyTorch's
# DataLoader with torchvision, in turns.
#
#   bench/data/compare_pictures.sh [BUILD_DIR]        (default build/release)
#
# SIZES   of JPEGs ("500x375 1280x720"), 256 of each, cut from the photographs of
#         $LOCKSTEP_TEST_DATA/ocr_det/train.zip, else drawn
# ROUNDS  of all programs (5), each of SECONDS_EACH (4)
# PYTHON  with the packages of bench/data/requirements.txt (python3)
# CORE    that all are bound to (0)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}}" && pwd)
ROUNDS=${ROUNDS:-5} SECONDS_EACH=${SECONDS_EACH:-4} PYTHON=${PYTHON:-python3} CORE=${CORE:-0} SIZES=${SIZES:-500x375 1280x720}
peer=$root/bench/peers/picture_data.py

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
photos=${LOCKSTEP_TEST_DATA:-}/ocr_det/train.zip
[ -f "$photos" ] || photos=
for size in $SIZES; do "$PYTHON" "$peer" --make "$work/$size" 256 "$size" $photos; done
"$PYTHON" -c 'import torch, torchvision, PIL; print(f"torch {torch.__version__}, torchvision "
  f"{torchvision.__version__}, Pillow {PIL.__version__}")'
echo "load at the start: $(cut -d ' ' -f 1-3 /proc/loadavg)"

one_size() {
  for kind in same reduced; do
    taskset -c "$CORE" "$build/bin/bench_pictures" "$work/$1" "$SECONDS_EACH" "$kind"
  done
  for kind in pillow tensor; do
    taskset -c "$CORE" "$PYTHON" "$peer" "$work/$1" "$SECONDS_EACH" "$kind"
  done
}

for ((round = 1; round <= ROUNDS; round++)); do
  for size in $SIZES; do one_size "$size" | sed "s/^/$size,/"; done
done | tee "$work/rows"

echo "load at the end: $(cut -d ' ' -f 1-3 /proc/loadavg)"
echo
echo "median of $ROUNDS rounds, images a second and core; ratio to the faster of PyTorch's two:"
sort -t, -k1,2 -k3n "$work/rows" | awk -F, -v sizes="$SIZES" '
  { values[$1, $2, ++count[$1, $2]] = $3 }
  function median(size, kind) { return values[size, kind, int((count[size, kind] + 1) / 2)] }
  END {
    split("lockstep-same lockstep-reduced tensor pillow", kinds, " ")
    for (s = 1; s <= split(sizes, all, " "); ++s) {
      best = median(all[s], "tensor")
      if (median(all[s], "pillow") > best) best = median(all[s], "pillow")
      for (i = 1; i <= 4; ++i)
        printf "%-10s %-18s %8.1f  %.2f\n", all[s], kinds[i], median(all[s], kinds[i]),
          median(all[s], kinds[i]) / best
    }
  }'
