#!/usr/bin/env bash
# Every source has the format of clang-format-14, which `make format` gives it: also one that git
# does not know yet. It prints what differs. scripts/lint.sh calls it, too.
# usage: format.sh BUILD SOURCE
set -euo pipefail
cd "$2"
command -v clang-format-14 >/dev/null || { echo "clang-format-14 is missing: scripts/setup.sh test installs it"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-format-XXXXXX")
trap 'rm -rf "$work"' EXIT

sources=$(git ls-files -co --exclude-standard '*.h' '*.cpp' 2>/dev/null | grep . ||
  find apps bench examples fuzz include lockstep tests -name '*.h' -o -name '*.cpp')
# Git lists what was deleted, too.
sources=$(while read -r file; do [ ! -e "$file" ] || echo "$file"; done <<<"$sources")
mkdir "$work/own"
xargs cp --parents -t "$work/own" .clang-format <<<"$sources"
cp -r "$work/own" "$work/formatted"
cd "$work/formatted"
# Not --dry-run: it takes the comment that ends an inline namespace for a fault, whatever it says.
xargs -P "$(nproc)" -n 50 clang-format-14 -i <<<"$sources"
cd "$work"
diff -ru own formatted
