#!/usr/bin/env bash
# Each public header, alone and as it is installed, compiles without a warning: with g++ and with clang. It names no header that
# is not installed. usage: public_headers.sh BUILD SOURCE
set -euo pipefail
build=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-headers-XXXXXX")
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" --component headers >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
include=$work/prefix/include
[ "$(cd "$include" && find . -name '*.h' | sort)" = "$(cd "$2/include" && find . -name '*.h' | sort)" ] ||
  { echo "other headers are installed than those of include/"; exit 1; }
mapfile -t torch < <(sed -n 's/^LOCKSTEP_TORCH_INCLUDES:INTERNAL=//p' "$build/CMakeCache.txt" | tr ';' '\n' | grep -vx /usr/include | sed 's/^/-isystem/')

# compile COMPILER TEXT: what the compiler says of it, whatever there is to be said of libtorch's own headers.
compile() { "$1" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I "$include" "${torch[@]}" -x c++ - <<<"$2" 2>&1; }

# check HEADER: a line a compiler that refuses it. Where clang refuses the headers of libtorch that it includes, as version 14
# does some, there is nothing to learn of ours.
check() {
  local header=$1 own compiler said
  own=$(grep -hoE '^#include <torch/[^>]*>' "$include/lockstep/$header" || true)
  [ "$header" != lockstep.h ] || own=$(cat "$include"/lockstep/*.h | grep -oE '^#include <torch/[^>]*>')
  for compiler in g++ clang++-14; do
    said=$(compile "$compiler" "#include \"lockstep/$header\"") && continue
    [ "$compiler" = g++ ] || [ -z "$own" ] || compile "$compiler" "$own" >/dev/null || continue
    echo "$header, $compiler: $(grep -m 3 -E 'error|warning' <<<"$said")"
  done
}

check_all() { while read -r header; do check "$header"; done; }
(cd "$include/lockstep" && ls -- *.h) >"$work/headers"
found=$(
  check_all < <(sed -n '1~2p' "$work/headers") &
  check_all < <(sed -n '2~2p' "$work/headers")
  wait
)
[ -z "$found" ] || { echo "$found"; exit 1; }

# The check itself can fail.
echo 'inline int faulty() { int nothing; return 1; }' >"$include/lockstep/faulty.h"
[ "$(check faulty.h | wc -l)" -ge 2 ] || { echo "a faulty header is not found"; exit 1; }
