#!/usr/bin/env bash
# Every test: the release build, then the layers without libtorch again under AddressSanitizer + UBSan and, as far as they have threads,
# under ThreadSanitizer, then real launchers, hosts and services. Nothing is skipped: what a test needs, scripts/setup.sh has installed.
set -euo pipefail
cd "$(dirname "$0")/.."
start=$SECONDS
scripts/build.sh release
# Three cores' worth at a time, for machines with two: many tests wait more than they compute, and those
# that keep two busy are counted so (CORES, cmake/LockstepBuild.cmake). Their deadlines bear it.
ctest --preset release -j 3 --no-tests=error
for sanitizer in asan tsan; do
  scripts/build.sh "$sanitizer"
  ctest --preset "$sanitizer" -j 3 --no-tests=error
done
tests/cluster/run.sh
echo "test: all passed in $((SECONDS - start)) s"
