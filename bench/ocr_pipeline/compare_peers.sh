#!/bin/bash
# Training data for text networks, made by one core: images a second of CPU time, here and in Python
# (OpenCV, NumPy, pyclipper), in turns.
#
#   bench/ocr_pipeline/compare_peers.sh [BUILD_DIR]        (default build/release)
#
# DATA    folder with det.txt, det/ (images), rec.txt, rec/: label files and images. Default: 64 scenes of
#         1280 x 720 and 2,000 words from `lockstep data synth-ocr`
# ROUNDS  of both programs (5), each of SECONDS_EACH (4)
# PYTHON  with cv2, numpy and pyclipper (/usr/bin/python3)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}}" && pwd)
ROUNDS=${ROUNDS:-5} SECONDS_EACH=${SECONDS_EACH:-4} PYTHON=${PYTHON:-/usr/bin/python3}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${DATA:-}" ]; then
  DATA=$work/data
  "$build/bin/lockstep-data" synth-ocr --det 64 --rec 2000 --size 1280x720 -o "$work/made" >/dev/null
  mkdir "$DATA"
  for kind in det rec; do
    ln -s "$work/made/$kind/train/images" "$DATA/$kind"
    ln -s "$work/made/$kind/train/${kind}_gt.txt" "$DATA/$kind.txt"
  done
fi

for ((round = 1; round <= ROUNDS; round++)); do
  for kind in det rec; do
    "$build/bin/bench_ocr_pipeline" "$kind" "$DATA/$kind.txt" "$DATA/$kind" "$SECONDS_EACH"
    "$PYTHON" "$(dirname "$0")/../peers/ocr_pipeline.py" "$kind" "$DATA/$kind.txt" "$DATA/$kind" "$SECONDS_EACH"
  done
done | tee "$work/rows"

echo
echo "median of $ROUNDS rounds, images a second and core:"
sort -t, -k1,2 -k3n "$work/rows" | awk -F, '
  { values[$1 "," $2, ++count[$1 "," $2]] = $3; kinds[$1] }
  function median(key, n) { n = count[key]; return values[key, int((n + 1) / 2)] }
  END {
    for (kind in kinds)
      printf "%s  lockstep %8.1f  python %8.1f  ratio %.2f\n", kind, median(kind ",lockstep"),
        median(kind ",python"), median(kind ",lockstep") / median(kind ",python")
  }'
