#!/usr/bin/env bash
# Starting ranks must not cost the loading of libtorch, nor of anything else but the C library.
# How long it takes: bench_launch. usage: launcher_is_light.sh BUILD SOURCE
set -euo pipefail

needed=$(readelf --dynamic "$1/bin/lockstep" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
grep -q '^libc\.so' <<<"$needed"
if other=$(grep -vE '^(libc|ld-linux.*)\.so' <<<"$needed"); then
  echo "bin/lockstep loads more than the C library, which costs each start 0.1 ms and more:"
  echo "$other"
  exit 1
fi
