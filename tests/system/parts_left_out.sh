#!/usr/bin/env bash
# Parts of Lockstep are left out. Contradictory options give one line. The core alone configures
# without the packages of other parts, builds and installs. usage: parts_left_out.sh BUILD SOURCE
set -euo pipefail
release=$1 source=$2
# Kept: the next run compiles only changes. It lies as deep below the sources as a preset's folder: so
# ccache, which hashes relative paths, has most objects from there.
build=$release/core_alone
[ "$(dirname "$release")" != "$source/build" ] || [ ! -w "$source/build" ] || build=$source/build/core_alone-$(basename "$release")
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-parts-XXXXXX")
trap 'rm -rf "$work"' EXIT

configure() { cmake -S "$source" -B "${folder:-$work/build}" -G Ninja -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF "$@" >"$work/log" 2>&1; }

# refused WORDS OPTION...: configuring fails with this message.
refused() {
  local words=$1
  shift
  rm -rf "$work/build"
  if configure "$@"; then
    echo "configured with $*"
    exit 1
  fi
  # CMake breaks long lines of a message.
  tr -s ' \n' ' ' <"$work/log" | grep -F -- "$words" >/dev/null || { cat "$work/log"; echo "does not say: $words"; exit 1; }
}
refused "LOCKSTEP_WITH_RECIPES is ON and needs the part TORCH, which is off; AUTO or OFF leaves it out" \
  -DLOCKSTEP_WITH_RECIPES=ON -DLOCKSTEP_WITH_TORCH=OFF
refused "LOCKSTEP_WITH_DOCTOR is ON and needs the part LAUNCHER, which is off" \
  -DLOCKSTEP_WITH_DOCTOR=ON -DLOCKSTEP_WITH_LAUNCHER=OFF -DLOCKSTEP_WITH_TORCH=OFF
refused "LOCKSTEP_WITH_MPI is 'maybe': ON, OFF or AUTO" -DLOCKSTEP_WITH_MPI=maybe -DLOCKSTEP_WITH_TORCH=OFF
refused "LOCKSTEP_WITH_TROCH: no part 'TROCH'; parts are TORCH, LAUNCHER" -DLOCKSTEP_WITH_TROCH=OFF -DLOCKSTEP_WITH_TORCH=OFF
refused "LOCKSTEP_WITH_DATA is ON and needs yaml-cpp (Debian: libyaml-cpp-dev)" \
  -DLOCKSTEP_WITH_DATA=ON -DLOCKSTEP_WITH_TORCH=OFF -DCMAKE_DISABLE_FIND_PACKAGE_yaml-cpp=ON

# The core alone, here also without libtorch: its build takes a minute. None of these packages is
# searched for.
hidden=()
for package in Torch yaml-cpp CURL LibArchive MPI; do hidden+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"); done
off=()
for part in TORCH LAUNCHER DOCTOR ETCD MPI GLOO NCCL DATA RECIPES; do off+=("-DLOCKSTEP_WITH_$part=OFF"); done
entry() { sed -n "s/^$1:[A-Z]*=//p" "$release/CMakeCache.txt"; }
kind=None # compiles fastest
cache=$(entry LOCKSTEP_CCACHE_FOLDER)
if [ -r "$cache" ] && [ "$(entry CMAKE_BUILD_TYPE)" = Release ]; then
  kind=Release
  # It only takes: the folder may be another user's, and its limits stand in that user's home. LANG is
  # hashed, as in scripts/build.sh.
  export CCACHE_DIR=$cache CCACHE_READONLY=1 CCACHE_TEMPDIR=$work/ccache LANG=C.UTF-8
fi
mkdir -p "$build"
rm -f "$build/CMakeCache.txt"
folder=$build configure -DCMAKE_BUILD_TYPE=$kind -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 "${hidden[@]}" "${off[@]}" ||
  { cat "$work/log"; exit 1; }
[ "$(grep -c '^-- part .* OFF: switched off by LOCKSTEP_WITH_' "$work/log")" = 9 ] || { grep '^-- part' "$work/log"; exit 1; }
nice cmake --build "$build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
headers=$(cd "$work/prefix/include/lockstep" && ls | xargs)
[ "$headers" = "amp_policy.h checkpoint_folder.h deadline.h error.h process_group.h progress.h spawn.h store.h types.h version.h world.h" ] ||
  { echo "installed headers: $headers"; exit 1; }
found=$(cd "$work/prefix/lib" && find . -name 'liblockstep_*.a' | sed 's/.*liblockstep_\(.*\)\.a/\1/' | sort | xargs)
[ "$found" = "amp_policy base checkpoint_format comm store world" ] || { echo "installed: $found"; exit 1; }
