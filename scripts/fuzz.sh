#!/bin/bash
# Builds the fuzz targets and runs each for some seconds. usage: scripts/fuzz.sh [SECONDS=60]
# Ends with 1 if a target crashed; the crashing inputs are in build/fuzz/crashes/.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

mkdir -p build/fuzz
{ cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_targets; } \
  >build/fuzz/build.log 2>&1 || { cat build/fuzz/build.log; exit 1; }
crashes=build/fuzz/crashes
mkdir -p "$crashes"

failed=0
for program in build/fuzz/bin/fuzz_*; do
  name=${program##*/fuzz_}
  log=build/fuzz/$name.log
  # New inputs go to the first folder; the seeds are only read.
  corpus=("build/fuzz/corpus/$name")
  mkdir -p "${corpus[0]}"
  [ -d "fuzz/corpus/$name" ] && corpus+=("fuzz/corpus/$name")
  status=0
  "$program" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$crashes/$name-" "${corpus[@]}" >"$log" 2>&1 || status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ "$status" -eq 0 ]; then
    echo "fuzz $name: ok, $runs inputs in $seconds s"
  else
    failed=1
    echo "fuzz $name: FAILED (exit status $status), see $log; inputs: $crashes/$name-*"
  fi
done
exit "$failed"
