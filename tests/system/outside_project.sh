#!/usr/bin/env bash
# Installs this build into a separate folder, builds a project that uses only
# find_package(Lockstep), and trains with it on two ranks. usage: outside_project.sh BUILD SOURCE
set -euo pipefail
build=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-outside-XXXXXX")
trap 'rm -rf "$work"' EXIT

quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "failed: $*"; exit 1; }; }

quietly cmake --install "$build" --prefix "$work/prefix"
# It names libtorch's folder, and that of TORCH=VERSION is one of the source's.
if grep -r -e "$source" -e "$build" "$work/prefix/lib/cmake" | sed "s#$source/build/torch/[0-9.]*/##g" | grep -e "$source" -e "$build"; then
  echo "the installed package points back into the source or build folder"
  exit 1
fi
quietly cmake -S "$source/examples/outside_project" -B "$work/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/prefix"
quietly cmake --build "$work/build"

# A prefix in PATH, as conda's, has other versions of the libraries; and the project is an old one.
mkdir -p "$work/conda/bin" "$work/conda/lib/cmake/fmt" "$work/old"
echo 'message(FATAL_ERROR "another fmt")' >"$work/conda/lib/cmake/fmt/fmt-config.cmake"
echo 'cmake_minimum_required(VERSION 3.0)
project(old CXX)
find_package(Lockstep REQUIRED COMPONENTS core)
find_program(found name_of_a_program_in_path)
if(NOT found)
  message(FATAL_ERROR "find_package(Lockstep) has changed how the project searches")
endif()' >"$work/old/CMakeLists.txt"
printf '#!/bin/sh\n' >"$work/conda/bin/name_of_a_program_in_path"
chmod +x "$work/conda/bin/name_of_a_program_in_path"
PATH=$work/conda/bin:$PATH quietly cmake -S "$work/old" -B "$work/old/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix"

output=$("$work/prefix/bin/lockstep" run --nproc_per_node 2 -- \
  "$work/build/train" "$work/line.safetensors")
echo "$output"
# Both ranks print the same weights, those of the line.
line='ranks 2, weight (2[.]99|3[.]00)[0-9]*, bias (0[.]99|1[.]00)[0-9]*$'
[ "$(grep -cE "$line" <<<"$output")" = 2 ]
[ "$(grep -o 'ranks 2.*' <<<"$output" | sort -u | wc -l)" = 1 ]
[ -s "$work/line.safetensors" ]

# The recipes are installed, too: their names are found from any folder.
mkdir "$work/empty" && cd "$work/empty"
if [ -x "$work/prefix/bin/lockstep-train" ]; then
  for name in cls/resnet/resnet18_cifar10.yaml configs/cls/resnet/resnet18_cifar10.yaml; do
    quietly "$work/prefix/bin/lockstep" train --check --config "$name"
    grep -q "^# Configuration: $work/prefix/share/lockstep/configs/cls/resnet/resnet18_cifar10.yaml$" "$work/log"
  done
  for name in cls/resnet/resnet19_cifar10.yaml resnet18_cifar10; do
    ! "$work/prefix/bin/lockstep" train --check --config "$name" >"$work/log" 2>&1
    grep -q "did you mean 'cls/resnet/resnet18_cifar10.yaml'" "$work/log"
  done
fi
