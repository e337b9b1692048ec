#!/usr/bin/env bash
# make install: builds all installed targets, without tests, and puts them below $PREFIX, or below
# $DESTDIR$PREFIX. Files that an earlier installation put there, and this one does not, are removed.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
prefix=$(realpath -m "${PREFIX:-/usr/local}")
goal=${DESTDIR:-}$prefix
there=$goal # the existing part of it
until [ -e "$there" ]; do there=$(dirname "$there"); done
[ -d "$there" ] && [ -w "$there" ] ||
  fail install "$(id -un) cannot make $goal, because of $there: make install PREFIX=FOLDER, or, with sudo for the last step alone: ${TORCH:+export TORCH=$(printf %q "$TORCH"); }scripts/setup.sh run && scripts/build.sh release lockstep_installed && sudo cmake --install $release --prefix $(printf %q "$prefix")"
scripts/setup.sh run
scripts/build.sh release lockstep_installed
# A folder that an earlier version has configured has no such log.
[ ! -f "$release/configure.log" ] || sed -n 's/^-- part \([A-Z]*\) *OFF: /install: left out   part \1: /p' "$release/configure.log"
# Without root, a manifest of root's cannot be overwritten.
rm -f "$release"/install_manifest.txt
umask 022 # other users run the programs
cmake --install "$release" --prefix "$prefix" >"$release"/install.log 2>&1 || {
  full=
  ! grep -qi 'no space left on device\|disk quota exceeded' "$release"/install.log || full=$(full_disks "$goal")
  fail install "${full:+no space left on $full; }$(grep -m 1 -A 3 'CMake Error' "$release"/install.log | tr -s '\n ' ' ' | cut -c1-300)"
}
list=$goal/share/lockstep/installed.txt # paths from the prefix
export LC_ALL=C # one order of lines
sed "s#^$prefix/##" "$release/install_manifest.txt" | sort >"$release/installed.txt"
if [ -f "$list" ]; then
  comm -23 "$list" "$release/installed.txt" | while IFS= read -r old; do rm -f "$goal/$old"; done
fi
cp "$release/installed.txt" "$list"
echo "install: $goal/bin/lockstep; CMake finds the package by -DCMAKE_PREFIX_PATH=$prefix"
