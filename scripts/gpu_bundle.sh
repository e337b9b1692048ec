#!/usr/bin/env bash
# Packs what scripts/gpu_check.sh needs on a machine without a network into one archive:
# scripts/gpu_bundle.sh FILE.tar.gz. There it is unpacked, and scripts/gpu_check.sh run in it. The
# archive has the sources as they stand, and in deps/ what that machine may lack: the headers of fmt,
# nlohmann-json, elfutils and OpenSSL, OpenSSL's two archives, and GoogleTest's sources.
set -euo pipefail
[ $# = 1 ] || { echo "usage: scripts/gpu_bundle.sh FILE.tar.gz" >&2; exit 2; }
out=$(realpath -m "$1")
cd "$(dirname "$0")/.."
limit_mib=60

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bundle=$folder/lockstep
mkdir -p "$bundle/deps/include" "$bundle/deps/lib/cmake"
git ls-files -z --cached --others --exclude-standard -- CMakeLists.txt CMakePresets.json LICENSE \
  apps bench cmake examples include lockstep scripts tests |
  tar --null --files-from=- --ignore-failed-read -cf - | tar -xf - -C "$bundle"

need() { # FOLDER NAME PACKAGE
  [ -e "$1/$2" ] || { echo "gpu_bundle: $1/$2 is not there (Debian: $3)" >&2; exit 2; }
}
need /usr/include fmt libfmt-dev
need /usr/include nlohmann nlohmann-json3-dev
need /usr/include elfutils libdw-dev
need /usr/include openssl libssl-dev
need /usr/src googletest libgtest-dev
archives=$(dirname "$(cc -print-file-name=libcrypto.a)")
need "$archives" libcrypto.a libssl-dev
cp -r /usr/include/{fmt,nlohmann,elfutils,openssl} "$bundle/deps/include/"
cp /usr/include/{libelf,gelf,dwarf,nlist}.h "$bundle/deps/include/" 2>/dev/null || true
cp -r /usr/include/"$(cc -print-multiarch)"/openssl/. "$bundle/deps/include/openssl/"
cp "$archives"/lib{crypto,ssl}.a "$bundle/deps/lib/"
mkdir "$bundle/deps/googletest"
cp -r /usr/src/googletest/googletest/{include,src} "$bundle/deps/googletest/"

config() { # NAME: the configuration of a package, from standard input
  mkdir -p "$bundle/deps/lib/cmake/$1"
  cat >"$bundle/deps/lib/cmake/$1/$1Config.cmake"
}
config fmt <<'CMAKE'
add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1
  INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../../../include")
CMAKE
config nlohmann_json <<'CMAKE'
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
set_target_properties(nlohmann_json::nlohmann_json PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}/../../../include")
CMAKE
config GTest <<'CMAKE'
set(source ${CMAKE_CURRENT_LIST_DIR}/../../../googletest)
add_library(gtest STATIC EXCLUDE_FROM_ALL ${source}/src/gtest-all.cc)
add_library(gtest_main STATIC EXCLUDE_FROM_ALL ${source}/src/gtest_main.cc)
target_include_directories(gtest SYSTEM PUBLIC ${source}/include PRIVATE ${source})
target_link_libraries(gtest_main PUBLIC gtest)
set_target_properties(gtest gtest_main PROPERTIES UNITY_BUILD OFF)
add_library(GTest::gtest ALIAS gtest)
add_library(GTest::gtest_main ALIAS gtest_main)
CMAKE
mkdir -p "$(dirname "$out")"
tar -czf "$out" -C "$folder" lockstep
mib=$(($(stat -c %s "$out") / 1048576 + 1))
[ $mib -le $limit_mib ] || { echo "gpu_bundle: $out has $mib MiB, $limit_mib are allowed" >&2; exit 1; }
echo "gpu_bundle: $out, $mib MiB"
