#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh PRESET [TARGET ...]. On a terminal ninja shows
# its progress; otherwise a line every ten seconds does. Failures are printed;
# build/PRESET/build.log has all output. Ends with one line.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
preset=$1
shift
folder=build/$preset
case $preset in
  release | debug | core) folder+=$LOCKSTEP_BUILD_SUFFIX ;;
  *) TORCH= ;; # it has no libtorch, or one of its own
esac
log=$folder/build.log
start=$SECONDS

# A prefix of the user's, such as conda's, has other versions of the same libraries. The build uses
# those that setup.sh installs; others must be given to CMake: cmake --preset PRESET
# -DCMAKE_PREFIX_PATH=...
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
# Compilers' output is searched for English words. ccache hashes these variables, so they are the same
# for everybody.
export LC_ALL=C.UTF-8 LANG=C.UTF-8
unset LC_CTYPE LC_MESSAGES
left_aside=
for name in CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_LIBDIR \
  CMAKE_PREFIX_PATH CMAKE_INCLUDE_PATH CMAKE_LIBRARY_PATH CMAKE_PROGRAM_PATH; do
  [ -z "${!name:-}" ] || left_aside+=" $name"
  unset "$name"
done

# One line in place of a hundred lines of compiler output.
mkdir -p "$folder" 2>/dev/null || fail build "$PWD/$folder cannot be made: $(mkdir -p "$folder" 2>&1 | sed 's/^mkdir: //')"
# The build need not write files left by `sudo cmake --install`.
foreign=$(find "$folder" ! -type l ! -writable ! -name install_manifest.txt -print -quit)
[ -z "$foreign" ] || fail build "$PWD/$foreign belongs to $(stat -c %U "$foreign"), and $(id -un) cannot write it: remove build/, or build in a clone of your own"
case ,$(findmnt -no OPTIONS -T .), in
  *,noexec,*) fail build "$(findmnt -no TARGET -T .) is mounted noexec, so no program that is built there could start: clone to another place" ;;
esac
configured_in=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt" 2>/dev/null || true)
[ -z "$configured_in" ] || [ "$configured_in" -ef . ] || fail build "$folder was configured in $configured_in and cannot be used in $PWD: remove $folder"

if command -v ccache >/dev/null; then
  cache=$(ccache --get-config cache_dir 2>/dev/null) || cache=
  # A read-only cache of another user is still useful with CCACHE_READONLY.
  if [ -z "${CCACHE_READONLY:-}" ] && { [ -z "$cache" ] || ! mkdir -p "$cache/tmp" 2>/dev/null || [ ! -w "$cache" ]; }; then
    echo "build: $preset  without ccache, whose folder ${cache:-(HOME is not set)} cannot be written"
    export CCACHE_DISABLE=1
  fi
fi

failed() { # prints the output without ninja's own lines, and the cause if it can be determined
  local full
  full=$(full_disks . "$folder" "${TMPDIR:-/tmp}" "${cache:-.}")
  # If no source has an error, a full disk explains the failure: not every program reports failed
  # writes.
  if grep -qi 'no space left on device\|disk quota exceeded' "$log" ||
    { [ -n "$full" ] && ! grep -qE '^[^ ]+:[0-9]+:[0-9]+: (fatal )?error: |undefined (reference|symbol)|CMake Error at ' "$log"; }; then
    fail build "no space left${full:+ on $full}; a release build with all tests takes about 4 GiB"
  fi
  grep -v '^\[[0-9]*/[0-9]*\] [A-Z]' "$log" >&2 || true
  grep -q 'Killed signal terminated program' "$log" && echo "build: the system ended a compiler, which it does when memory runs out; one compiler takes up to 1.5 GiB: NINJAFLAGS=-j1" >&2
  fail build "$preset failed after $((SECONDS - start)) s; all of it is in $log"
}

# Configures anew after packages were installed: an earlier configuration would lack, for example,
# MPI.
if [ ! -f "$folder/build.ninja" ] || [ /var/lib/dpkg/status -nt "$folder/configured" ]; then
  cmake --preset "$preset" ${TORCH:+"-DLOCKSTEP_TORCH=$TORCH"} >"$log" 2>&1 || failed
  { cp "$log" "$folder/configure.log" && touch "$folder/configured"; } 2>/dev/null || failed
  torch=$(sed -n 's/^-- \(libtorch .* of .*\)/, \1/p' "$folder/configure.log" | head -n 1)
  echo "build: $preset  configured$torch${left_aside:+, whatever these variables say:$left_aside}"
fi

progress() { # from the newest "[n/m]" of ninja; "[0/2]" is only its check for changes
  local done total seconds=$((SECONDS - start)) left=
  IFS=/ read -r done total < <(sed -n 's/^\[\([0-9]*\/[0-9]*\)\] .*/\1/p' "$log" | tail -n 1)
  [ "${done:-0}" -gt 0 ] || return 0
  [ $((done * 10)) -lt "$total" ] || [ "$done" = "$total" ] || left=", about $((seconds * (total - done) / done + 1)) s left"
  echo "build: $preset  $done of $total after $seconds s$left"
}

# Ends with ninja, which ends its compilers, even if this script is killed.
ninja=(setpriv --pdeathsig TERM ninja -C "$folder" -j "$(compilers_at_once)" ${NINJAFLAGS:-} "$@")
if [ -t 1 ]; then
  "${ninja[@]}" || {
    full=$(full_disks . "$folder" "${TMPDIR:-/tmp}" "${cache:-.}")
    fail build "$preset failed after $((SECONDS - start)) s${full:+; there is next to no space left on $full}"
  }
else
  : >"$log"
  report_every 10 progress
  NINJA_STATUS='[%f/%t] ' "${ninja[@]}" >"$log" 2>&1 || failed
  stop_reporting
  # The last line has the final numbers, even if the build was done before the first line was due.
  progress
fi
echo "build: $preset  $folder/bin is up to date after $((SECONDS - start)) s"
