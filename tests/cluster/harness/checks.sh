# Functions for tests.
# shellcheck shell=bash
# A test is a function test_WHAT_IT_SHOWS that runs under `set -e`. $OUTPUT holds the output of the
# last `within` or `ends`.

fail() { # MESSAGE: ends the test and shows the last output
  echo "  failed: $*"
  echo "  last output:"
  tail -n 60 "${OUTPUT:-}" 2>/dev/null | sed 's/^/    /'
  exit 1
}

# Starts a command, or a function; its output goes to $OUTPUT.TAG. `ends` waits for it.
declare -A BEGUN=()
begin() { # TAG COMMAND...
  local tag=$1
  shift
  echo "  [$tag] \$ $*"
  "$@" >"$OUTPUT.$tag" 2>&1 &
  BEGUN[$tag]=$!
}
ends() { # TAG SECONDS CODE
  local pid=${BEGUN[$1]} got=0 in_time=1
  until_true "$2" gone "$pid" || in_time=0
  cp "$OUTPUT.$1" "$OUTPUT"
  [ "$in_time" = 1 ] || fail "[$1] did not end within $2 s"
  wait "$pid" || got=$?
  [ "$got" = "$3" ] || fail "[$1] exit code $got, expected $3"
}
within() { # SECONDS CODE COMMAND...: runs it to its end
  begin run "${@:3}"
  ends run "$1" "$2"
}

gone() { # PID: ended, or a zombie
  local text
  { read -r text <"/proc/$1/stat"; } 2>/dev/null || return 0
  text=${text##*) }
  [ "${text%% *}" = Z ]
}

# Checks that the last output contains, or lacks, extended regular expressions.
says() { local text; for text in "$@"; do grep -Eq -- "$text" "$OUTPUT" || fail "no line matches: $text"; done; }
says_not() { local text; for text in "$@"; do ! grep -Eq -- "$text" "$OUTPUT" || fail "a line matches: $text"; done; }
shows() { # TAG SECONDS TEXT: a begun command prints it
  until_true "$2" grep -Eq -- "$3" "$OUTPUT.$1" || { cp "$OUTPUT.$1" "$OUTPUT"; fail "[$1] did not show within $2 s: $3"; }
}

one_shows() { # SECONDS TEXT TAG...: one of these begun commands prints it, whichever
  local files=("${@:3}")
  files=("${files[@]/#/$OUTPUT.}")
  until_true "$1" grep -Eqs -- "$2" "${files[@]}" || { cat "${files[@]}" >"$OUTPUT"; fail "none of [${*:3}] showed within $1 s: $2"; }
}

until_true() { # SECONDS COMMAND...: repeats it until it succeeds
  local seconds=$1 begin=$SECONDS
  shift
  until "$@" >/dev/null 2>&1; do
    [ $((SECONDS - begin)) -lt "$seconds" ] || [ $((SECONDS - begin)) -lt "$(allowed "$seconds")" ] || return 1
    sleep 0.05
  done
}

# allowed SECONDS: converts the seconds of an idle machine to those of this one under its load. At
# most ten times as many: a hang shows on a busy machine as well.
CORES=$("$ROOT/scripts/cores.sh")
allowed() {
  awk -v seconds="$1" -v cores="$CORES" '{
    split($4, processes, "/")
    busy = ($1 > processes[1] ? $1 : processes[1]) / cores
    printf "%.0f", seconds * (busy < 1 ? 1 : busy > 10 ? 10 : busy)
  }' /proc/loadavg
}

now() { echo "$EPOCHREALTIME"; }
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }'; }
figure() { echo "figure: $*"; } # is printed beside the test's result
at_most() { # TOOK SECONDS
  awk -v a="$1" -v b="$(allowed "$2")" 'BEGIN { exit !(a <= b) }' || fail "took $1 s, at most $2 s are allowed, and $(allowed "$2") s on a machine that is as busy"
}
