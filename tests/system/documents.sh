#!/usr/bin/env bash
# Each block of the documents says what it is. "console" can be typed as it stands, and begins with a command: tests/bare types it.
# usage: documents.sh BUILD SOURCE
set -euo pipefail
cd "$2"
wrong=$(awk '
  FNR == 1 { inside = first = 0 }
  /^```/ {
    inside = !inside
    first = inside && $0 == "```console"
    if (inside && $0 == "```") print FILENAME ":" FNR ": a block that does not say what it is: console, sh, text ..."
    next
  }
  first && !/^\$ / { print FILENAME ":" FNR ": a block \"console\" begins with \"$ \" and a command" }
  { first = 0 }' README.md CONTRIBUTING.md docs/*.md)
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }

# As many at least as there were: a block that is marked otherwise is one that nobody tries.
for least in 5:README.md 1:docs/debugging.md 1:docs/from-ascend.md 3:docs/launchers.md 1:docs/mixed_precision.md 1:docs/ocr.md; do
  found=$(grep -c '^```console$' "${least#*:}" || true)
  [ "$found" -ge "${least%%:*}" ] || { echo "${least#*:} has $found blocks \"console\", at least ${least%%:*} are expected"; exit 1; }
done
