#!/usr/bin/env bash
# Process 1 of an isolated environment: segment.sh TEST_FILE...
#
# run.sh starts it in its own namespaces (processes, network, mounts, names). All processes, ports,
# mounts and files in there end with this process. So no teardown is needed, and two runs never
# meet. Sources the files and runs their functions test_*, in order; each must leave the environment
# as before. Ends with 0 if all passed, with 3 if ONLY selects none.
set -uo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
BIN=${LOCKSTEP_BIN_DIR:-$ROOT/build/release/bin}
SHARED=/srv # a file system that all hosts share, as in clusters
HARNESS=$ROOT/tests/cluster/harness
for part in checks leftovers hosts services training; do source "$HARNESS/$part.sh"; done

limit=${TEST_LIMIT:-120} # seconds a test may take on an idle machine

prepare() {
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 tmpfs "$SHARED"
  mkdir -p "$SHARED"/{root,etc,hosts,log,runs}
  # Past jobs are remembered in a file system that ends with the segment.
  mkdir -p /root/.local/state
  mount -t tmpfs -o mode=700 tmpfs /root/.local/state
  mount --bind "$ROOT" "$SHARED/root"
  # From here on only this path of the checkout is used: its own may have spaces, or be hidden by a
  # mount.
  [[ $BIN != "$ROOT"/* ]] || BIN=$SHARED/root${BIN#"$ROOT"}
  ROOT=$SHARED/root HARNESS=$SHARED/root/tests/cluster/harness
  cd "$ROOT" || return
  source "$HARNESS/scratch.sh"
  hostname head
  segment_up
}

# Ends at a test's time limit. `read` waits without a process that would be left.
time_is_over() {
  local second
  for ((second = 0; second < $(allowed "$limit"); second++)); do read -r -t 1 <>"$SHARED/never" || true; done
}

# Runs one test, ends its leftovers, and prints the result.
run_test() { # FUNCTION
  local log=$SHARED/log/$1 begin=$EPOCHREALTIME code ended title=${1#test_}
  title=${title//_/ }
  keep
  files_and_ports >"$SHARED/before"
  : >"$SHARED/expected"
  (set -e; OUTPUT=$log.output; "$1") >"$log" 2>&1 &
  local test=$!
  time_is_over &
  local alarm=$!
  wait -n -p ended "$test" "$alarm"
  code=$?
  if [ "$ended" = "$alarm" ]; then
    code=124
    echo "  still running after $(allowed "$limit") s; processes:" >>"$log"
    ps -eo pid,ppid,etimes,args --forest >>"$log"
  fi
  kill "$alarm" 2>/dev/null
  wait "$alarm" 2>/dev/null
  hosts_restore >>"$log" 2>&1
  nothing_left >>"$log" 2>&1 || [ "$code" != 0 ] || code=1
  local took
  took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  if [ "$code" = 0 ]; then
    printf 'cluster: %-58s ok in %4s s  %s\n' "$title" "$took" "$(sed -n 's/^figure: //p' "$log" | paste -sd';')"
  else
    printf 'cluster: %-58s FAILED after %s s\n' "$title" "$took"
    sed 's/^/    /' "$log" | tail -n "${LOG_LINES:-60}"
  fi
  [ "${VERBOSE:-}" = "" ] || tail -n 100 "$log" "$log".output* | sed 's/^/    /'
  return "$code"
}

prepare || { echo "cluster: error: the namespaces could not be made ready" >&2; exit 1; }
# Tests rely on each file's own commands.
trap 'echo "cluster: error: $file:$LINENO failed: $BASH_COMMAND" >&2' ERR
set -eE
for file in "$@"; do source "$file"; done
set +eE
trap - ERR
failed=0 picked=0
# By line number: in their order in the files.
shopt -s extdebug
tests=$(for name in $(compgen -A function test_); do declare -F "$name"; done | sort -k3,3 -k2,2n | awk '{print $1}')
shopt -u extdebug
for name in $tests; do
  [[ $name =~ ${ONLY:-.} ]] || continue
  picked=$((picked + 1))
  run_test "$name" || failed=$((failed + 1))
done
[ "$failed" = 0 ] || { echo "cluster: $failed failed" >&2; exit 1; }
[ "$picked" != 0 ] || exit 3
