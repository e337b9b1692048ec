# Checks of a program's output and exit code, to be sourced.
# shellcheck shell=bash
# has() searches the output of the last run() or refused().

fail() { echo "$1"; exit 1; }
has() { grep -qE -- "$1" <<<"$output" || fail "no line of the output matches: $1"; }
run() { output=$("$@" 2>&1) || { local status=$?; echo "$output"; fail "ended with $status: $*"; }; }
refused() { # PATTERN COMMAND...: exit code 2 and one line
  local status=0
  output=$("${@:2}" 2>&1) || status=$?
  echo "$output"
  [ "$status" = 2 ] && [ "$(wc -l <<<"$output")" = 1 ] || fail "ended with $status, and not with 2 and one line"
  has "$1"
}
