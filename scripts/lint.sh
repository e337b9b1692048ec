#!/usr/bin/env bash
# Formatting; the clang build, whose -Wthread-safety checks the lock annotations; then clang-tidy
# with its flags. Layers that link libtorch are left to g++: clang 14 cannot parse its headers as
# C++20. It takes more than half an hour on two cores, most of it the analyzer.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

tests/system/format.sh build .
echo "lint: format      ok"
scripts/build.sh clang

progress() {
  echo "lint: $name  $(wc -l <"$finished") of $total"
}

# Tests have small numbers and texts in pieces, as a reader sees.
of_tests=-bugprone-implicit-widening-of-multiplication-result,-bugprone-integer-division,-bugprone-misplaced-widening-cast
of_tests+=,-bugprone-narrowing-conversions,-bugprone-not-null-terminated-result,-bugprone-suspicious-missing-comma

# tidy NAME FOLDER CHECKS [OPTIONS]: clang-tidy for all that is compiled for the build in FOLDER.
tidy() {
  name=$1
  finished=$(mktemp)
  scratch+=("$finished")
  local sources
  sources=$(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$2/compile_commands.json")
  total=$(wc -l <<<"$sources")
  [ -t 1 ] || report_every 30 progress
  export finished of_tests folder=$2 checks=$3 options=${4:-}
  # shellcheck disable=SC2016
  xargs -P "$(nproc)" -n 1 bash -fc '
    [[ $0 != */tests/* ]] || checks+=,$of_tests
    said=$(clang-tidy-14 -p "$folder" --quiet "--checks=$checks" $options "$0" 2>&1) && failed=0 || failed=1
    [ $failed = 0 ] || grep -v "^[0-9]* warnings\? generated\.$" <<<"$said"
    echo "$0" >>"$finished"
    exit $failed' <<<"$sources"
  stop_reporting
  echo "lint: $name  ok, $total units"
}

# Most checks look at a source with all its headers, for some seconds. The sources of one unit share
# that. There a source is an included file, and its local names may be those of another source.
cmake --preset clang -B build/clang-unity -DCMAKE_UNITY_BUILD=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
  >build/clang/unity.log 2>&1 || { cat build/clang/unity.log >&2; exit 1; }
tidy "clang-tidy" build/clang-unity \
  "-clang-analyzer-*,-bugprone-suspicious-include" \
  "--header-filter=(lockstep|apps|tests|bench|examples|fuzz)/.*\.(h|cpp)$ --extra-arg=-Wno-shadow"
# The static analyzer follows the functions of the source that is compiled, not of included ones.
tidy "analyzer  " build/clang "-bugprone-*,-misc-*,-modernize-*,-performance-*,-readability-*"
