#!/usr/bin/env bash
# Formatting; the clang build, whose -Wthread-safety checks the lock annotations; then clang-tidy
# with its flags. Layers that link libtorch are left to g++: clang 14 cannot parse its headers as
# C++20.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.h' '*.cpp' | xargs clang-format-14 --dry-run --Werror
echo "lint: format      ok"
scripts/build.sh clang
sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/clang/compile_commands.json |
  xargs -P "$(nproc)" -n 4 clang-tidy-14 -p build/clang --quiet
echo "lint: clang-tidy  ok"
