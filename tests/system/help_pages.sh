#!/usr/bin/env bash
# Every --help has one look: usage first, no line over 100 columns, no text of the option parser.
# That of `run` is divided into groups. usage: help_pages.sh BUILD SOURCE
set -euo pipefail
lockstep=$1/bin/lockstep
bad=0

complain() { # page, fault
  echo "lockstep $1 --help: $2"
  bad=1
}

check() { # the verb's words
  local page
  page=$("$lockstep" "$@" --help) || { complain "$*" "ended with $?"; return; }
  [[ $page == "usage: lockstep $*"* ]] || complain "$*" "does not begin with its usage"
  ! grep -E '^.{101}' <<<"$page" || complain "$*" "the line above is too long"
  ! grep -E 'REQUIRED|Excludes|Needs:|TEXT|INT:|FLOAT|^Positionals|^Options:' <<<"$page" ||
    complain "$*" "the line above has words of the parser"
  ! grep -F '{}' <<<"$page" || complain "$*" "the line above lacks the default of its option"
  grep -q -- '^  -h, --help' <<<"$page" || complain "$*" "does not list itself"
}

for verb in run ps stop logs inspect env doctor 'doctor backends' ranktable bench 'bench collectives'; do
  # shellcheck disable=SC2086
  check $verb
done
for verb in train eval plan predict export data 'data synth-ocr' convert 'bench ddp'; do
  program=lockstep-$verb
  case $verb in eval | plan | export) program=lockstep-train ;; esac
  # shellcheck disable=SC2086
  [ ! -x "$1/bin/${program// /-}" ] || check $verb
done

"$lockstep" --help >/dev/null
"$lockstep" help --help >/dev/null
page=$("$lockstep" run --help)
for group in 'Ranks and hosts' 'Where hosts meet' 'Hosts that this command starts' \
  'Failures, restarts and the end' Output 'The program' 'CPUs and devices of a rank' Other; do
  grep -qx "$group:" <<<"$page" || complain run "has no group '$group'"
done
exit $bad
