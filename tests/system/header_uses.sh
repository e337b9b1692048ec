#!/usr/bin/env bash
# Each public header shows its use, in code that compiles, and speaks of threads, cost and errors. A
# use is what stands three spaces further in below a comment line "Use:". header_uses.h has the names
# that it may take as given. The words are "Threads:", "Cost:" and "Errors:" in its comments.
# usage: header_uses.sh BUILD SOURCE
set -euo pipefail
build=$1
cd "$2"
given=$PWD/tests/system/header_uses.h
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-uses-XXXXXX")
trap 'rm -rf "$work"' EXIT
mapfile -t torch < <(sed -n 's/^LOCKSTEP_TORCH_INCLUDES:INTERNAL=//p' "$build/CMakeCache.txt" | tr ';' '\n' | grep -vx /usr/include | sed 's/^/-isystem/')

# uses_of HEADER: its uses, each in a namespace. One that has a main() is a whole file, others are
# the body of a function.
uses_of() {
  awk -v name="$(basename "$1" .h)" '
    function end() {
      if (!first) return
      if (code ~ /[^\n]/) uses++
      if (code ~ /(^|\n)int main\(/) shape = "%s"; else shape = "int use() {\n%s}\n"
      printf "namespace use_of_%s_%d {\n" shape "}\n", name, first, "#line " first " \"" FILENAME "\"\n" code
      first = 0
    }
    first && /^ *\/\/\/?(   .*)?$/ { sub(/^ *\/\/\/?(   )?/, ""); code = code $0 "\n"; next }
    first && /^ *\/\/\/? .*[;{]$/ { print FILENAME ":" FNR ": code of a use needs three spaces" >"/dev/stderr"; bad = 1; exit }
    { end() }
    /^ *\/\/\/? Use:$/ { first = FNR + 1; code = "" }
    END { end(); exit bad || !uses }' "$1"
}

# missing_words HEADER: the words that no comment of it has. A header that only includes others needs
# none.
missing_words() {
  local word
  grep -qvE '^(#.*|//.*|)$' "$1" || return 0
  for word in Threads Cost Errors; do
    grep -qE "^ *//.*\<$word(:|, )" "$1" || echo "$word:"
  done
}

echo "#include \"$given\"" >"$work/uses.cpp"
headers=(include/lockstep/*.h)
for header in "${headers[@]}"; do
  uses_of "$header" >>"$work/uses.cpp" || { echo "$header shows no use"; exit 1; }
  missing=$(missing_words "$header" | xargs)
  [ -z "$missing" ] || { echo "$header does not say: $missing"; exit 1; }
done
# The check itself can fail: a header without a use or without words, and a wrong name in a use.
cd "$work"
printf '%s\n' '// Use:' '//' '// lockstep::version()' >without.h
! uses_of without.h >nothing || { echo "a header without a use is not found"; exit 1; }
printf '%s\n' '// Use:' '//   lockstep::version();' '//  lockstep::version();' >shifted.h
! uses_of shifted.h >nothing 2>&1 || { echo "code outside a use is not found"; exit 1; }
printf '%s\n' '// Threads: any.' '/// Cost of it: none.' 'int go(const char* text = "Errors:");' >wordless.h
[ "$(missing_words wordless.h | xargs)" = 'Cost: Errors:' ] || { echo "missing words are not found"; exit 1; }
printf '%s\n' '#pragma once' '// Both.' '' '#include "a.h"' '#include "b.h"' >both.h
[ -z "$(missing_words both.h)" ] || { echo "words are asked of a header that only includes others"; exit 1; }
printf '%s\n' '/// Use:' '///   lockstep::World::jion();' >faulty.h
uses_of faulty.h >>uses.cpp

said=$(g++ -std=c++20 -Wall -Wextra -Werror -Wno-unused -Wno-return-type -fsyntax-only -I "$OLDPWD/include" "${torch[@]}" uses.cpp 2>&1) || true
grep -qE '^faulty.h:2:.*jion' <<<"$said" || { echo "a wrong name in a use is not found: $said"; exit 1; }
! grep -E '(error|warning): ' <<<"$said" | grep -v '^faulty.h:2:' || exit 1
echo "${#headers[@]} headers, $(grep -c '^namespace use_of_' uses.cpp) uses"
