#!/usr/bin/env bash
# Programs that link libtorch take std::filesystem from the compiler's own libstdc++. Packages of
# libtorch export parts of another one.
# usage: own_standard_library.sh BUILD SOURCE
set -euo pipefail
program=$1/bin/lockstep-train
bindings=$(LD_BIND_NOW=1 LD_DEBUG=bindings "$program" --help 2>&1 >/dev/null | grep "binding file $program .*NSt10filesystem10remove_all" || true)
[ -n "$bindings" ] || { echo "$program does not call std::filesystem::remove_all"; exit 1; }
if other=$(grep -v ' to [^ ]*/libstdc++\.so' <<<"$bindings"); then
  echo "$other"
  exit 1
fi
