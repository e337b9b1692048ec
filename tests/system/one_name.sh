#!/usr/bin/env bash
# A type of namespace lockstep has one definition. Two of one name in different headers would
# violate the one-definition rule, and no tool reports it. A public and an internal type of one name
# would be ambiguous.
set -euo pipefail
cd "$2"
twice=$(git ls-files 'include/*.h' 'lockstep/*.h' 'apps/*.h' 2>/dev/null | grep . || find include lockstep apps -name '*.h')
twice=$(awk '
  /^namespace lockstep::inline internal \{/ { space = "lockstep"; next }
  /^namespace [a-z_:]+ \{/ { space = $2 }
  /^(struct|class|enum class) / && /\{/ {
    name = $0
    sub(/^(struct|class|enum class) (alignas\([^)]*\) |LOCKSTEP_[A-Z_]+(\([^)]*\))? )*/, "", name)
    gsub(/::/, "@", name)  # a type within another, defined outside of it
    sub(/[ :{<].*/, "", name)
    gsub(/@/, "::", name)
    full = space "::" name
    if ($0 !~ /::Entry/ && full in at && at[full] != FILENAME) print full ": " at[full] ", " FILENAME
    at[full] = FILENAME
  }' $twice)
[ -z "$twice" ] || { echo "types with one name:"; echo "$twice"; exit 1; }
