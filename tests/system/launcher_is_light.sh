#!/usr/bin/env bash
# Starting ranks must load only the C library, and not libtorch. bench_launch measures the time.
# usage: launcher_is_light.sh BUILD SOURCE
set -euo pipefail

needed=$(readelf --dynamic "$1/bin/lockstep" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
grep -q '^libc\.so' <<<"$needed"
if other=$(grep -vE '^(libc|ld-linux.*)\.so' <<<"$needed"); then
  echo "bin/lockstep loads more than the C library, which costs each start 0.1 ms and more:"
  echo "$other"
  exit 1
fi

# What __builtin_cpu_supports() pulls in runs before main(): lockstep/base/processor.h.
if nm "$1/bin/lockstep" | grep -w __cpu_indicator_init; then
  echo "bin/lockstep reads CPUID a dozen times at each start, 0.1 ms in a virtual machine"
  exit 1
fi
