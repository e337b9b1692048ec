#!/usr/bin/env bash
# The table of parts in docs/guide/installing.md has the rows of cmake/LockstepOptions.cmake. usage: parts_table.sh BUILD SOURCE
set -euo pipefail
cd "$2"
# lockstep_part(NAME default "needs" "summary") -> | `NAME` | default | needs | summary |
wanted=$(sed -nE 's/^lockstep_part\((\w+) +(\w+) +"([^"]*)" +"([^"]*)"\)$/| `\1` | \2 | \3 | \4 |/p' cmake/LockstepOptions.cmake | sed 's/;/, /')
[ "$(wc -l <<<"$wanted")" -ge 9 ] || { echo "no rows found in LockstepOptions.cmake"; exit 1; }
found=$(sed -nE 's/^(\| `\w+` \| \w+ \| [^|]*\| [^|]*\|).*/\1/p' docs/guide/installing.md | tr -s ' ' | sed 's/| |/| |/g')
diff <(tr -s ' ' <<<"$wanted") <(tr -s ' ' <<<"$found") || { echo "docs/guide/installing.md differs from cmake/LockstepOptions.cmake"; exit 1; }
