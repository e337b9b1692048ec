#!/usr/bin/env bash
# docs/reference/verbs.md equals the help of the commands. usage: reference.sh BUILD SOURCE
set -euo pipefail
now=$("$2/scripts/reference.sh" "$1")
if ! diff <(echo "$now") "$2/docs/reference/verbs.md"; then
  echo "docs/reference/verbs.md is not what --help shows: scripts/reference.sh $1 >docs/reference/verbs.md"
  exit 1
fi
