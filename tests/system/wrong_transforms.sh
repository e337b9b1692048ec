#!/usr/bin/env bash
# A transform of one's own that could not work does not compile, and the compiler's first error has
# the reason. usage: wrong_transforms.sh BUILD SOURCE
set -euo pipefail
include=$2/include
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-transforms-XXXXXX")
trap 'rm -rf "$work"' EXIT
options=(-std=c++20 -Wall -Wextra -Werror -I "$include")
echo '#include <lockstep/registry.h>' >"$work/registry.h"
g++ "${options[@]}" -x c++-header "$work/registry.h" -o "$work/registry.h.gch" # read once, for all transforms

# said_of FUNCTION: the compiler's output for a transform that is this function.
said_of() {
  cat >"$work/part.cpp" <<END
#include "registry.h"
using lockstep::Picture, lockstep::RandomNumbers;
const lockstep::TransformPart kPart("Part", "of a test", [](lockstep::Section&) { return $1; });
END
  g++ "${options[@]}" -fsyntax-only "$work/part.cpp" 2>&1
}
accepted() {
  local said
  said=$(said_of "$1") || { echo "$1 does not compile: $said"; exit 1; }
}
refused() { # FUNCTION REASON
  local said first
  ! said=$(said_of "$1") || { echo "$1 compiles"; exit 1; }
  first=$(grep -m 1 "error: " <<<"$said" || true)
  [[ $first == *"static assertion failed: $2"* ]] || { echo "$1: $said"; exit 1; }
}

accepted '[](Picture& picture) { picture.bytes()[0] = 1; }'
accepted '[most = 3](Picture& picture, RandomNumbers& random) { picture.bytes()[0] = uint8_t(random.below(most)); }'
accepted 'lockstep::PlainTransform([](Picture&) {})'
accepted 'lockstep::PictureTransform(lockstep::RandomTransform())'

reference='a transform must take its picture as lockstep::Picture&'
refused '[](Picture picture) { picture.bytes()[0] = 1; }' "$reference"
refused '[](Picture picture, RandomNumbers& random) { picture.bytes()[0] = uint8_t(random.below(3)); }' "$reference"
refused '[](const Picture&) {}' "$reference"
refused '[calls = 0](Picture&) mutable { ++calls; }' 'a transform must not be mutable'
refused '[calls = 0](Picture&, RandomNumbers&) mutable { ++calls; }' 'a transform must not be mutable'
refused '[](Picture& picture) { return picture; }' 'a transform must return nothing'
refused '[](Picture&, RandomNumbers& random) { return random.next(); }' 'a transform must return nothing'
refused '[](int) {}' 'a transform must take (lockstep::Picture&)'
refused '7' 'a transform must take (lockstep::Picture&)'
