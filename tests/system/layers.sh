#!/usr/bin/env bash
# A layer includes its own headers and those of the layers that it links in CMake. Folders include
# each other in one direction. The picture of the layers is drawn from CMake's graph.
# usage: layers.sh BUILD SOURCE
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-layers-XXXXXX")
trap 'rm -rf "$work"' EXIT

"$source/scripts/layers.py" check
"$source/scripts/layers.py" draw "$work/layers.svg"
cmp "$work/layers.svg" "$source/docs/images/layers.svg" || { echo "docs/images/layers.svg is not up to date: scripts/layers.py draw"; exit 1; }

# forbidden FILE HEADER WORDS: the check reports it if FILE includes HEADER. All at once: a check
# configures a build.
for each in lockstep include apps cmake CMakeLists.txt; do cp -r "$source/$each" "$work/"; done
expected=()
forbidden() {
  sed -i "1i #include \"$2\"" "$work/$1"
  expected+=("^$1:[12]: .*$3") # a file has at most two of them
}
forbidden lockstep/comm/topology.cpp lockstep/launch/job/failure.h "of layer 'launch', which 'comm' does not link"
forbidden lockstep/world/places.cpp lockstep/comm/topology.h "of layer 'comm', which 'world' does not link"
forbidden lockstep/comm/topology.cpp ../launch/job/failure.h 'which no layer has'
# A header of a layer that is linked privately is for sources.
forbidden lockstep/ocr/draw/crop.h lockstep/ocr/geometry/polygon.h "which 'ocr_draw' does not link"
# Sources that are not built here, or belong to no layer, count too.
forbidden lockstep/comm/mpi/shim.cpp lockstep/launch/job/failure.h "which 'comm' does not link"
forbidden lockstep/tensor/c10d/nccl_group.cpp lockstep/parallel/reducer.h "which 'tensor' does not link"
# Folders of one layer, and a folder with one below it.
forbidden lockstep/launch/process/poller.cpp lockstep/launch/agent/agent.h 'which includes it in turn'
forbidden lockstep/store/request.cpp lockstep/store/tcp/protocol.h 'which includes it in turn'
forbidden lockstep/comm/native/tcp/frame.cpp lockstep/comm/native/host_ranks.h 'which includes it in turn'
forbidden lockstep/models/layers.cpp lockstep/models/build/build_model.h 'which includes it in turn'
! output=$("$source/scripts/layers.py" check "$work") || { echo "forbidden includes, and nothing says so"; exit 1; }
for line in "${expected[@]}"; do
  grep -q "$line" <<<"$output" || { printf '%s\n' "$output" "no line matches: $line"; exit 1; }
done

# The compiler refuses such a header as well: world's own command, with another source.
command=$(sed -n 's#^ *"command": "\(.*\) -o [^ ]*lockstep_world\.dir/.*#\1#p' "$build/compile_commands.json" | sed -n 1p)
[ -n "$command" ] || { echo "compile_commands.json has no command of lockstep_world"; exit 1; }
mkdir "$work/source" # away from the copies above, beside which "lockstep/..." would be found
compiles() {
  echo "#include \"$1\"" >"$work/source/one.cpp"
  (cd "$build" && $command -fsyntax-only "$work/source/one.cpp") >"$work/said" 2>&1
}
compiles lockstep/world/places.h || { cat "$work/said"; exit 1; }
for header in lockstep/comm/topology.h lockstep/process_group.h tests/support/ranks.h; do
  compiles "$header" && { echo "a source of world that includes $header compiles"; exit 1; }
  grep -qE "$header('?: No such file|' file not found)" "$work/said" || { cat "$work/said"; exit 1; }
done
