#!/usr/bin/env bash
# find_package(Lockstep COMPONENTS ...) requires only the component's own packages. A project of
# each component is configured without the packages of the others, and its tests run. usage:
# components.sh BUILD SOURCE
set -euo pipefail
build=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-components-XXXXXX")
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "failed: $*"; exit 1; }; }
quietly cmake --install "$build" --prefix "$work/prefix"

configure() { # COMPONENT HIDDEN ABSENT [PRESENT]: packages and targets, with ";" between
  local hidden=() package
  for package in ${2//;/ }; do hidden+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"); done
  rm -rf "$work/project"
  cmake -S "$source/tests/system/outside_components" -B "$work/project" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCOMPONENT="$1" -DABSENT="$3" -DPRESENT="${4:-}" -DLOCKSTEP_EXAMPLES="$source/examples" "${hidden[@]}"
}
component() {
  quietly configure "$@"
  quietly cmake --build "$work/project"
  quietly ctest --test-dir "$work/project" --no-tests=error --output-on-failure
  echo "component $1: ok"
}
component launcher 'Torch;nlohmann_json;yaml-cpp;CURL;LibArchive' 'lockstep::parallel;lockstep::train;lockstep::config'
component core 'nlohmann_json;yaml-cpp;CURL;LibArchive' 'lockstep::launch;lockstep::train;lockstep::config'
component recipes '' 'lockstep::launch;lockstep::doctor'

# Without a component everything is present.
quietly configure '' '' '' 'lockstep::core;lockstep::comm;lockstep::launch;lockstep::lockstep;lockstep::train;lockstep::lockstep-train'

# A missing package of a component is reported, and an unknown component is one line.
if configure recipes yaml-cpp '' >"$work/log" 2>&1; then echo "recipes without yaml-cpp were found"; exit 1; fi
grep -q 'yaml-cpp' "$work/log"
if configure recipe '' '' >"$work/log" 2>&1; then echo "a component 'recipe' was found"; exit 1; fi
tr -s ' \n' ' ' <"$work/log" | grep -F "no component or layer 'recipe'; components of this build are core, launcher, recipes" >/dev/null ||
  { cat "$work/log"; exit 1; }
