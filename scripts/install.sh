#!/usr/bin/env bash
# make install: builds all installed targets, without tests, and puts them below $PREFIX.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
prefix=$(realpath -m "${PREFIX:-/usr/local}")
there=$prefix # the existing part of it
until [ -e "$there" ]; do there=$(dirname "$there"); done
[ -d "$there" ] && [ -w "$there" ] ||
  fail install "$(id -un) cannot make $prefix, because of $there: make install PREFIX=FOLDER, or, with sudo for the last step alone: ${TORCH:+export TORCH=$(printf %q "$TORCH"); }scripts/setup.sh run && scripts/build.sh release lockstep_installed && sudo cmake --install $release --prefix $(printf %q "$prefix")"
scripts/setup.sh run
scripts/build.sh release lockstep_installed
# Without root, a manifest of root's cannot be overwritten.
rm -f "$release"/install_manifest.txt
cmake --install "$release" --prefix "$prefix" >"$release"/install.log 2>&1 || {
  full=
  ! grep -qi 'no space left on device\|disk quota exceeded' "$release"/install.log || full=$(full_disks "$prefix")
  fail install "${full:+no space left on $full; }$(grep -m 1 -A 3 'CMake Error' "$release"/install.log | tr -s '\n ' ' ' | cut -c1-300)"
}
echo "install: $prefix/bin/lockstep; CMake finds the package by -DCMAKE_PREFIX_PATH=$prefix"
