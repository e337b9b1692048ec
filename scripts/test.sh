#!/usr/bin/env bash
# Every test: the release build, then the layers without libtorch again under AddressSanitizer + UBSan and
# under ThreadSanitizer, then real launchers, hosts and services. Nothing is skipped: what a test needs, scripts/setup.sh has installed.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
scripts/build.sh release
# Two at a time: many wait more than they compute. Their deadlines bear it.
ctest --preset release -j 2 --no-tests=error
for sanitizer in asan tsan; do
  scripts/build.sh "$sanitizer"
  ctest --preset "$sanitizer" -j 2 --no-tests=error
done
tests/cluster/run.sh
echo "test: all passed in $((SECONDS - start)) s"
