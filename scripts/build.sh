#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh PRESET [TARGET ...]. Ends with one line.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
folder=build/$preset
if [ ! -f "$folder/build.ninja" ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
  echo "build: $preset  configured"
fi
start=$SECONDS
# On a terminal ninja redraws one line with its own progress; piped, only failures are of interest.
if [ -t 1 ]; then
  ninja -C "$folder" "$@"
else
  output=$(ninja -C "$folder" "$@" 2>&1) || { grep -v '^\[[0-9]*/[0-9]*\] [A-Z]' <<<"$output" >&2; exit 1; }
fi
echo "build: $preset  $folder/bin is up to date after $((SECONDS - start)) s"
