#!/usr/bin/env bash
# Starting ranks must not cost the loading of libtorch, nor of anything else but the C library.
# How long it takes: bench_launch. usage: launcher_is_light.sh BUILD SOURCE
set -euo pipefail

needed=$(ldd "$1/bin/lockstep")
grep -q 'libc\.so' <<<"$needed"
if heavy=$(grep -E 'torch|c10|gomp|protobuf|opencv' <<<"$needed"); then
  echo "bin/lockstep loads what only ranks need:"
  echo "$heavy"
  exit 1
fi
