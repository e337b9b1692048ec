#!/usr/bin/env bash
# Checks whether Lockstep compiles with another libtorch than the installed one. Only the other's headers are needed:
#   scripts/check_torch_headers.sh FOLDER [COMPILER OPTION...]      FOLDER has torch/, ATen/ and c10/
#   ONLY=regex scripts/check_torch_headers.sh ...                   only sources that match
# Compiles the sources of a release build that use libtorch; makes no objects, and touches no build folder. COMPILER OPTIONS give the
# place of headers that the other's include: -DUSE_C10D_NCCL -isystem /usr/local/cuda/include, with nccl.h, adds c10d:nccl.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f "${1:-}/ATen/core/TensorBody.h" ] ||
  { echo "usage: scripts/check_torch_headers.sh FOLDER [OPTION...]; '${1:-}' has no ATen/core/TensorBody.h" >&2; exit 2; }
torch=$(realpath "$1") && shift
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
nccl=OFF && [[ " $*" == *USE_C10D_NCCL* ]] && nccl=ON
cmake --preset release -B "$work/build" -DLOCKSTEP_WITH_NCCL=$nccl -DLOCKSTEP_ASSUME_NCCL=$nccl >"$work/log" || { cat "$work/log" >&2; exit 1; }
cd "$work/build"

# Every command, one a line, with the other's headers instead of the installed ones.
sed -n 's/^ *"command": "\(.*\)",$/\1/p' compile_commands.json | sed 's/\\"/"/g; s/\\\\/\\/g' |
  grep -F 'torch/csrc/api/include' |
  sed -E "s# -isystem [^ ]*/torch/csrc/api/include# -isystem $torch -isystem $torch/torch/csrc/api/include $*#" >"$work/all"
echo "reading libtorch's headers once for all layers, and once for all tests"
command=$(grep 'cmake_pch.hxx.gch' "$work/all")
bash -ec "$command"

check() {  # $1: a command
  local source=${1##* } out
  out=$(mktemp "$work/check.XXXX")
  bash -c "${1/ -o * -c / -fsyntax-only -MD -MF "$out.d" -c }" >"$out" 2>&1 || echo failed >>"$out"
  # Headers missing in the folder would come from the installed one, and prove nothing.
  tr -s ' \\' '\n' <"$out.d" | grep -E '/(ATen|c10|caffe2|torch)/' | grep -vF "$torch" | grep -v "^$PWD" | sed 's/^/not the folder'"'"'s: /' >>"$out" || true
  [ -s "$out" ] || { echo "ok      ${source#"$work/build/"}"; return 0; }
  echo "FAILED  $source" && grep -E 'error|note:|not the folder' "$out" | head -60
  return 1
}
export -f check && export torch work
grep -v 'cmake_pch.hxx.gch' "$work/all" | while read -r command; do
  source=${command##* }
  if [ -z "${ONLY:-}" ] || grep -qE -- "$ONLY" <(echo "$source" && cat "$source"); then printf '%s\0' "$command"; fi
done | xargs -0 -P "$(nproc)" -I{} bash -c 'check "$0"' {}
echo "all sources compile with the libtorch of $torch"
