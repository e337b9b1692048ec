#!/usr/bin/env bash
# Names of public headers are lockstep::X, all others lockstep::internal::X: see internal_names.py.
# usage: internal_names.sh BUILD SOURCE
set -euo pipefail
source=$2
check=$(dirname "$0")/internal_names.py
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-names-XXXXXX")
trap 'rm -rf "$work"' EXIT

"$check" "$source"

# refuses FILE TEXT WORDS: the check reports it if a header has the text.
for each in include lockstep tests; do
  (cd "$source" && find "$each" -name '*.h') | (cd "$source" && xargs cp --parents -t "$work")
done
refuses() {
  local output
  cp "$work/$1" "$work/kept"
  printf '%s\n' "$2" >>"$work/$1"
  ! output=$("$check" "$work") || { echo "$1 may have: $2"; exit 1; }
  grep -q "^$1:[0-9]*: .*$3" <<<"$output" || { printf '%s\n' "$output" "no line matches: $3"; exit 1; }
  [ "$(wc -l <<<"$output")" = 2 ] || { printf '%s\n' "$output" "more than one fault"; exit 1; }
  mv "$work/kept" "$work/$1"
}
internal='namespace lockstep::inline internal'
refuses lockstep/base/text.h 'namespace lockstep { struct Stray { int x; }; }' "forward declarations only, not 'struct Stray"
refuses lockstep/base/text.h $'namespace lockstep {\nint stray();\n}' "forward declarations only, not 'int stray"
refuses tests/support/temp_folder.h $'namespace lockstep {\nnamespace shm {\nclass Barrier;\n}\n}' "forward declarations only"
refuses lockstep/base/text.h $'namespace lockstep {\nclass GroupCore;\n}' "'GroupCore' is internal"
refuses lockstep/base/text.h "$internal {"$'\nclass World;\n}' "'World' is public"
refuses lockstep/base/text.h $'namespace lockstep::internal {\nint stray();\n}' "write $internal"
refuses include/lockstep/world.h "$internal {"$'\nint stray();\n}' "forward declarations only, not 'int stray"
refuses include/lockstep/world.h $'namespace lockstep {\nclass GroupCore;\n}' "'GroupCore' is internal"
