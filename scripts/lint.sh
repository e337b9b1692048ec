#!/usr/bin/env bash
# Formatting; the clang build, whose -Wthread-safety checks the lock annotations; then clang-tidy
# with its flags. Layers that link libtorch are left to g++: clang 14 cannot parse its headers as
# C++20.
set -euo pipefail
cd "$(dirname "$0")/.."
# Not --dry-run: it takes the comment that ends an inline namespace for a fault, whatever it says.
git ls-files '*.h' '*.cpp' | xargs -P "$(nproc)" -n 1 bash -c \
  'clang-format-14 "$0" | diff -u --label "$0" --label "$0, formatted" "$0" -'
echo "lint: format      ok"
scripts/build.sh clang
sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/clang/compile_commands.json |
  xargs -P "$(nproc)" -n 4 clang-tidy-14 -p build/clang --quiet
echo "lint: clang-tidy  ok"
