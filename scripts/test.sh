#!/usr/bin/env bash
# Every test, in five parts: the release build; its tests; the layers without libtorch again under
# AddressSanitizer + UBSan and, where they have threads, under ThreadSanitizer; real launchers,
# hosts and services. Nothing is skipped: scripts/setup.sh has installed all needs of the tests.
# scripts/test.sh [PART...] runs some of the parts: build, release, asan, tsan, cluster. The last
# needs root, which is checked first. One more part, torch, is a part of release: the tests that link
# libtorch or run what links it, for TORCH= another one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
parts=("$@")
[ $# -gt 0 ] || parts=(build release asan tsan cluster)
start=$SECONDS
log=$(mktemp 2>/dev/null) || fail test "${TMPDIR:-/tmp} cannot be written: is it there, and is there space left?"
scratch=("$log")
case ,$(findmnt -no OPTIONS -T "${TMPDIR:-/tmp}"), in
  *,noexec,*) fail test "${TMPDIR:-/tmp} is mounted noexec, and tests start programs that they write there: TMPDIR=FOLDER make test" ;;
esac

# tests PRESET CORES: more cores than a machine with two has, because most tests wait far more than
# they compute. Tests that keep two busy declare it (CORES, cmake/LockstepBuild.cmake). Their
# deadlines allow for that. Compilers beside them are too much: tests then wait for a core for
# seconds, whatever the priorities.
tests() { # PRESET CORES [OPTION...] of ctest
  ctest --preset "$1" -j "$2" --no-tests=error "${@:3}" | without_passed | tee "$log"
}
# Leaves out the passed tests of a program with a failure, which ctest shows too. All of it is in
# build/PRESET/Testing/Temporary/LastTest.log.
without_passed() {
  local line run='' blank=''
  while IFS= read -r line; do
    case $line in
      '[ RUN '*)
        [ -z "$run" ] || printf '%s\n' "$run"
        run=$line
        continue
        ;;
      '['*' OK ] '*' ms)') [ -z "$run" ] || { run='' && continue; } ;;
      '[---'*) continue ;;
      '')
        [ -n "$blank" ] || echo
        blank=1
        continue
        ;;
    esac
    [ -z "$run" ] || printf '%s\n' "$run"
    run='' blank=''
    printf '%s\n' "$line"
  done
  [ -z "$run" ] || printf '%s\n' "$run"
}
# Tests *AsRoot, about a second user or about namespaces, which other users may lack. The parts
# above leave them out.
as_root() {
  [ "$(id -u)" != 0 ] || return 0
  # Those that contain such a test, by the name of its class. Older builds may have left others here.
  local program programs
  programs=$(ctest --preset release --show-only=json-v1 | sed -nE 's#.*"[^"]*/bin/([a-z0-9_]+_test)".*#\1#p' | sort -u |
    (cd "$release/bin" && xargs grep -ls AsRoot_Test)) ||
    fail test "the release build lacks some programs of tests, or all tests AsRoot: scripts/build.sh release"
  for program in $programs; do
    sudo -n --preserve-env=TMPDIR tests/support/surroundings.sh "$PWD/$release" "$PWD" "$release/bin/$program" \
      --gtest_filter='*AsRoot*' >"$log" 2>&1 && grep -q 'PASSED  \] [1-9]' "$log" || { cat "$log"; return 1; }
  done
}
# A part that lacks a package is not built, nor are its tests; setup.sh has installed all packages.
all_parts() {
  local cache=$release/CMakeCache.txt part expected=(TORCH LAUNCHER DOCTOR ETCD MPI DATA RECIPES)
  [ -n "$TORCH" ] || expected+=(GLOO) # PyPI's packages bring none of its headers
  for part in "${expected[@]}"; do
    grep -q "^LOCKSTEP_PARTS_ON:INTERNAL=.*\b$part\b" "$cache" || fail test "the release build has no part $part: cmake --preset release says why"
  done
  grep -q ' comm_mpich_test$' <<<"$(ctest --preset release -N)" || fail test "the release build has no comm_mpich_test: is libmpich-dev there?"
}
run_part() {
  case $1 in
    build) scripts/build.sh release && all_parts ;;
    release) tests release 4 ;;
    torch) tests release 4 -L '^torch$' ;;
    asan | tsan) scripts/build.sh "$1" && tests "$1" 4 ;;
    cluster) as_root && tests/cluster/run.sh | tee "$log" ;;
  esac
}
declare -A title=([build]="release build" [release]="tests of the release build" [torch]="tests that link libtorch" [asan]="AddressSanitizer and UBSan"
  [tsan]="ThreadSanitizer" [cluster]="launchers, hosts, services")

summary=() others=()
for part in "${parts[@]}"; do
  [ -n "${title[$part]:-}" ] || fail test "no part '$part'; parts are build, release, torch, asan, tsan, cluster"
  [ "$part" = cluster ] || others+=("$part")
done
if [[ $PWD == *[[:space:]]* && -n ${others[*]/build/} ]]; then
  fail test "tests start programs by a shell, which would take $PWD apart at its spaces: clone to a path without any"
fi
# Check first, so that half an hour of tests is not begun if the last part cannot pass.
if [ ${#others[@]} -lt ${#parts[@]} ]; then
  why=$(tests/cluster/run.sh --possible 2>&1) ||
    fail test "${why#cluster: error: }${others[*]:+; what needs none of this: make test PARTS=\"${others[*]}\"}"
fi
for i in "${!parts[@]}"; do
  part=${parts[i]}
  place="$((i + 1)) of ${#parts[@]}  ${title[$part]}"
  echo "test: part $place"
  begin=$SECONDS code=0
  : >"$log"
  run_part "$part" || code=1
  what=$(sed -n 's/.*tests passed, \([0-9]* tests failed out of [0-9]*\)$/\1/p' "$log" | sed 's/^0 tests failed out of \(.*\)/\1 programs, /; s/\(failed out of.*\)/\1, /')
  ok=$(grep -cE '^cluster: .* ok in ' "$log" || true)
  [ "$ok" = 0 ] || what="$ok tests, "
  if [ "$code" != 0 ]; then
    summary+=("part $place: FAILED, $what$((SECONDS - begin)) s")
    break
  fi
  summary+=("part $place: passed, $what$((SECONDS - begin)) s")
done

printf 'test: %s\n' "${summary[@]}"
[ "$code" = 0 ] || fail test "not all passed, after $((SECONDS - start)) s; the failing tests are named above"
echo "test: all passed in $((SECONDS - start)) s"
