#!/usr/bin/env bash
# The archive for a machine with a GPU is complete and small, and the report of its checks counts what
# failed. What needs a GPU runs there alone (scripts/gpu_check.sh).
# usage: gpu_scripts.sh BUILD SOURCE
set -euo pipefail
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-gpu-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }

"$source/scripts/gpu_bundle.sh" "$work/bundle.tar.gz" >"$work/said" || fail "$(cat "$work/said")"
[ "$(stat -c %s "$work/bundle.tar.gz")" -le $((60 << 20)) ] || fail "$(cat "$work/said")"
tar -xzf "$work/bundle.tar.gz" -C "$work"
for file in scripts/gpu_check.sh scripts/gpu_report.py tests/gpu/gpu_checks.cpp bench/peers/ddp_step.py \
  deps/include/fmt/format.h deps/include/openssl/configuration.h deps/lib/libcrypto.a deps/googletest/src/gtest-all.cc; do
  [ -f "$work/lockstep/$file" ] || fail "the archive has no $file"
done
# Its packages serve a project: this one links all of them.
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user CXX)
set(CMAKE_CXX_STANDARD 20)
foreach(package fmt nlohmann_json OpenSSL GTest Threads)
  find_package(${package} REQUIRED)
endforeach()
add_library(user OBJECT user.cpp)
target_link_libraries(user fmt::fmt nlohmann_json::nlohmann_json OpenSSL::SSL GTest::gtest)
CMAKE
cat >"$work/user/user.cpp" <<'CPP'
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#ifndef FMT_HEADER_ONLY
#error "fmt would be linked"
#endif
CPP
deps=$work/lockstep/deps
{ cmake -S "$work/user" -B "$work/user/build" "-DCMAKE_PREFIX_PATH=$deps" "-DOPENSSL_ROOT_DIR=$deps" \
    -DOPENSSL_USE_STATIC_LIBS=ON && cmake --build "$work/user/build" --target user; } >"$work/said" 2>&1 || fail "$(cat "$work/said")"
grep -q "^OPENSSL_CRYPTO_LIBRARY:FILEPATH=$deps/lib/libcrypto.a" "$work/user/build/CMakeCache.txt" || fail "another OpenSSL"

code=0
PYTHON=$work/no-python "$source/scripts/gpu_check.sh" "$work/out" >"$work/said" 2>&1 || code=$?
[ $code = 1 ] && grep -q "no-python has no package torch: PYTHON=... names one that has" "$work/said" || fail "$code $(cat "$work/said")"

# A build that takes too long is no error of the sources.
mkdir "$work/tools"
printf '#!/bin/sh\n[ "$1" != --build ] || exec sleep 60\n' >"$work/tools/cmake"
printf '#!/bin/sh\necho 2.14.0\n' | tee "$work/tools/nvcc" >"$work/tools/python"
chmod +x "$work/tools"/*
code=0
PATH=$work/tools:$PATH PYTHON=$work/tools/python GPU_CHECK_LIMIT_S=2 "$source/scripts/gpu_check.sh" "$work/out" >"$work/said" 2>&1 || code=$?
[ $code = 1 ] && grep -q "the build was not done after [0-9]* s: GPU_CHECK_LIMIT_S=N allows more than 2 s" "$work/said" || fail "$code $(cat "$work/said")"

# CUDA's compiler in PATH is found, although packages are not searched there.
mkdir -p "$work/cuda/include"
touch "$work/cuda/include/cuda_runtime.h"
cat >"$work/find.cmake" <<CMAKE
cmake_minimum_required(VERSION 3.25)
set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)
include($source/cmake/LockstepFindTorch.cmake)
lockstep_find_cuda_toolkit()
message("\${CMAKE_CUDA_COMPILER} \${CUDA_TOOLKIT_ROOT_DIR}")
CMAKE
env -u CUDACXX CUDA_HOME="$work/cuda" PATH="$work/tools:/usr/bin:/bin" /usr/bin/cmake -P "$work/find.cmake" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
grep -qx "$work/tools/nvcc $work/cuda" "$work/said" || fail "$(cat "$work/said")"

cat >"$work/out/results.jsonl" <<'JSON'
{"check": "memory", "ok": true, "seconds": 1.5, "note": "0 KiB"}
{"model": "resnet50", "mode": "independent", "ranks": 1, "backend": "c10d:nccl", "step_ms_p50": 25.0}
{"model": "resnet50", "mode": "ddp", "ranks": 1, "backend": "c10d:nccl", "step_ms_p50": 30.0}
{"peer": "PyTorch", "model": "resnet50", "mode": "independent", "ranks": 1, "step_ms_p50": 20.0}
{"peer": "PyTorch", "model": "resnet50", "mode": "ddp", "ranks": 1, "step_ms_p50": 40.0}
{"model": "resnet50", "mode": "ddp", "ranks": 2, "backend": "native", "step_ms_p50": 60.0}
{"model": "transformer25m", "mode": "independent", "ranks": 1, "backend": "c10d:nccl", "step_ms_p50": 9.0}
{"model": "transformer25m", "mode": "ddp", "ranks": 1, "backend": "c10d:nccl", "step_ms_p50": 10.0}
{"model": "transformer25m", "mode": "ddp", "ranks": 2, "backend": "native", "step_ms_p50": 20.0}
JSON
report() { /usr/bin/python3 -S "$source/scripts/gpu_report.py" "$work/out" 100 200 "$1" >"$work/said" 2>&1; }
report 535 || fail "$(cat "$work/said")"
grep -qE '^resnet50 +ddp +1 +c10d:nccl +30\.00 ms +40\.00 ms +0\.75$' "$work/said" || fail "$(cat "$work/said")"
! report 150 || fail "200 s are within 150 s"
sed -i 's/"ok": true/"ok": false/' "$work/out/results.jsonl"
! report 535 || fail "a check that failed is no failure"
grep -q '^FAIL memory' "$work/said" || fail "$(cat "$work/said")"
