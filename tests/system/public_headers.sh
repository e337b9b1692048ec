#!/usr/bin/env bash
# Each public header, alone and as installed, compiles without a warning with g++ and with clang. It
# includes only installed headers. usage: public_headers.sh BUILD SOURCE
set -euo pipefail
build=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-headers-XXXXXX")
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" --component headers >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
include=$work/prefix/include
[ "$(cd "$include" && find . -name '*.h' | sort)" = "$(cd "$2/include" && find . -name '*.h' | sort)" ] ||
  { echo "other headers are installed than those of include/"; exit 1; }
mapfile -t torch < <(sed -n 's/^LOCKSTEP_TORCH_INCLUDES:INTERNAL=//p' "$build/CMakeCache.txt" | tr ';' '\n' | grep -vx /usr/include | sed 's/^/-isystem/')

options=(-std=c++20 -Wall -Wextra -Werror -Wfatal-errors -I "$include" "${torch[@]}")
# Most of the time goes into libtorch's header of tensors: each compiler reads it once, for all of ours
# that include it, themselves or by another of ours.
precompile() { # COMPILER SUFFIX
  mkdir "$work/$1"
  echo '#include <ATen/core/Tensor.h>' >"$work/$1/tensor.h"
  "$1" "${options[@]}" -x c++-header "$work/$1/tensor.h" -o "$work/$1/tensor.h.$2" >"$work/$1/said" 2>&1 || { cat "$work/$1/said"; return 1; }
}
precompile g++ gch &
precompile clang++-14 pch || { wait; exit 1; }
wait $! || exit 1
has_tensors() { # HEADER
  local other
  ! grep -qx '#include <ATen/core/Tensor.h>' "$include/lockstep/$1" || return 0
  for other in $(sed -n 's#^\#include "lockstep/\(.*\)".*#\1#p' "$include/lockstep/$1"); do
    ! has_tensors "$other" || return 0
  done
  return 1
}

# compile COMPILER TEXT: the compiler's output. $tensors is set for a header that has them.
compile() {
  "$1" "${options[@]}" -fsyntax-only ${tensors:+-include "$work/$1/tensor.h"} -x c++ - <<<"$2" 2>&1
}

# check HEADER: "HEADER COMPILER ok", or the compiler's output.
check() {
  local header=$1 compiler said tensors=
  ! has_tensors "$header" || tensors=1
  for compiler in g++ clang++-14; do
    if said=$(compile "$compiler" "#include \"lockstep/$header\""); then
      echo "$header $compiler ok"
    else
      echo "$header $compiler: $(grep -m 3 -E 'error|warning' <<<"$said")"
    fi
  done
}

# One of ours that is not installed may be in a folder that every compiler searches.
named=$(grep -rhoE '^#include "lockstep/[^"]*"' "$include" | sed 's/.*"\(.*\)"/\1/' | sort -u)
for header in $named; do
  [ -f "$include/$header" ] || { echo "a public header includes $header, which is not installed"; exit 1; }
done
# No comment refers to a missing file either.
strange=$(grep -rnoE '//.*' "$include" | grep -oE '[a-z_/0-9]+\.(h|cpp)\b' | grep -vE '^torch/|^aten/' | sort -u |
  while read -r name; do [ -f "$include/lockstep/${name##*/}" ] || echo "$name"; done)
[ -z "$strange" ] || { echo "comments of public headers name files that are not installed:" $strange; exit 1; }

check_all() { while read -r header; do check "$header"; done; }
(cd "$include/lockstep" && ls -- *.h) >"$work/headers"
check_all < <(sed -n '1~2p' "$work/headers") >"$work/one" &
first=$!
check_all < <(sed -n '2~2p' "$work/headers") >"$work/two"
wait "$first"
headers=$(wc -l <"$work/headers")
cat "$work/one" "$work/two" >"$work/all"
! grep -v ' ok$' "$work/all" || exit 1
[ "$(wc -l <"$work/all")" = $((2 * headers)) ] || { echo "of $headers headers not all were compiled twice"; exit 1; }
echo "$headers headers, each read by g++ and by clang"

# The check itself can fail, with each compiler.
echo 'inline int faulty() { int nothing; return 1; }' >"$include/lockstep/faulty.h"
said=$(check faulty.h)
for compiler in g++ clang++-14; do
  grep -q "^faulty.h $compiler: .*unused" <<<"$said" || { echo "a faulty header is not found with $compiler"; exit 1; }
done
