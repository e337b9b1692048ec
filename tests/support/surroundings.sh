#!/usr/bin/env bash
# Runs a test in an environment that is the same everywhere: surroundings.sh BUILD SOURCE COMMAND...
#
# It sets all that may differ between users: variables, home folder, fonts, locale, time zone,
# umask, soft limits and ignored signals. It gives a test at most two cores, for which tests are
# written. It keeps the variables that locate libraries, devices and space, and settings of the test
# or its sanitizer, no more.
set -euo pipefail
build=$1 source=$2
shift 2

umask 022
# soft LIMIT VALUE: as far as the hard limit allows.
soft() { ulimit -S -"$1" "$2" 2>/dev/null || ulimit -S -"$1" "$(ulimit -H -"$1")"; }
soft c 0
soft n 1024
soft s 8192
for limit in d f t u v; do soft $limit unlimited; done

kept=()
for name in TMPDIR LD_LIBRARY_PATH CMAKE_PREFIX_PATH CUDA_VISIBLE_DEVICES \
  "${!LOCKSTEP_TEST_@}" "${!GTEST_@}" "${!ASAN_@}" "${!UBSAN_@}" "${!LSAN_@}"; do
  [ -z "${!name+set}" ] || kept+=("$name=${!name}")
done
home=$build/home
mkdir -p "$home"

# Two of the usable cores, others for each test. LOCKSTEP_TEST_CORES holds their total number.
cores=$("$source/scripts/cores.sh")
before=()
usable=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr , '\n' | sed 's/-/ /; t; s/.*/& &/' | xargs -n 2 seq)
# Not from a process substitution: the program that replaces this shell would have it as a child.
mapfile -t usable <<<"$usable"
if [ ${#usable[@]} -gt 2 ]; then
  first=$(($$ * 2 % ${#usable[@]}))
  pair=${usable[first]},${usable[(first + 1) % ${#usable[@]}]}
  ! taskset -c "$pair" true 2>/dev/null || before+=(taskset -c "$pair")
fi
# The sanitizers of g++ 12 use fixed addresses, which a kernel with 32 bits of randomization may
# give to other mappings.
if grep -q '^LOCKSTEP_SANITIZE:STRING=.' "$build/CMakeCache.txt" 2>/dev/null && setarch -R true 2>/dev/null; then
  before+=(setarch -R)
fi
python=$(sed -n 's/^LOCKSTEP_TEST_PYTHON:INTERNAL=//p' "$build/CMakeCache.txt" 2>/dev/null || true)
[ -z "$python" ] || kept+=("LOCKSTEP_TEST_PYTHON=$python")
exec "${before[@]}" env --default-signal -i "${kept[@]}" HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  LC_ALL=C.UTF-8 TZ=UTC FONTCONFIG_FILE="$source/tests/support/fonts.conf" TSAN_OPTIONS="suppressions=$source/tests/support/tsan.supp" \
  LOCKSTEP_TEST_CORES="$cores" LOCKSTEP_BIN_DIR="$build/bin" LOCKSTEP_SOURCE_DIR="$source" "$@"
