#!/usr/bin/env bash
# A program that links the core contains nothing of the launcher, of doctor and of text in images.
# The trainer contains nothing of the first two. usage: parts_apart.sh BUILD SOURCE
set -euo pipefail
build=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-apart-XXXXXX")
trap 'rm -rf "$work"' EXIT

# functions KINDS FILE...: the functions and objects of namespace lockstep defined there, sorted. A
# linker may turn an archive's global symbols into local ones: nm then shows small letters.
functions() {
  local kinds=$1
  shift
  nm --defined-only "$@" 2>/dev/null | awk -v kinds="^[$kinds]\$" '$2 ~ kinds && $3 ~ /^_ZNK?8lockstep/ { print $3 }' | sort -u
}
archives() { # NAME...: the archives of these layers that are built
  local name
  for name in "$@"; do find "$build/lockstep" -name "liblockstep_$name.a"; done
}

# without PROGRAM LAYER...: it contains none of their functions.
without() {
  local program=$1 own
  shift
  mapfile -t own < <(archives "$@")
  [ "${#own[@]}" -gt 0 ] || { echo "no archive of: $*"; exit 1; }
  functions TBDR "${own[@]}" >"$work/theirs"
  [ "$(wc -l <"$work/theirs")" -ge 50 ] || { echo "the archives of $* have next to no functions"; exit 1; }
  functions TBDRtbdr "$build/bin/$program" >"$work/of_program"
  [ "$(wc -l <"$work/of_program")" -ge 300 ] || { echo "$program has next to no functions of Lockstep"; exit 1; }
  comm -12 "$work/theirs" "$work/of_program" >"$work/both"
  if [ -s "$work/both" ]; then
    echo "$program has $(wc -l <"$work/both") functions of $*, such as"
    c++filt <"$work/both" | head -n 5
    return 1
  fi
}

# The check must be able to find them.
if without lockstep launch >"$work/log"; then
  echo "the command lockstep has nothing of the launcher: this test sees nothing"
  exit 1
fi
grep -q 'functions of launch' "$work/log"

without five_lines launch
without five_lines doctor
without five_lines 'ocr_*' 'data*' config
if [ -x "$build/bin/lockstep-train" ]; then
  without lockstep-train launch
  without lockstep-train doctor
fi
