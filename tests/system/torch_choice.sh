#!/usr/bin/env bash
# LOCKSTEP_TORCH names the libtorch of a build. A choice that cannot be built with gives one line, and the one that is taken is named.
# usage: torch_choice.sh BUILD SOURCE
set -euo pipefail
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep-torch-XXXXXX")
trap 'rm -rf "$work"' EXIT

configure() {
  rm -rf "$work/build"
  cmake -S "$source" -B "$work/build" -G Ninja -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF -DLOCKSTEP_EXAMPLES=OFF \
    -DLOCKSTEP_WITH_MPI=OFF -DLOCKSTEP_WITH_DATA=OFF -DLOCKSTEP_WITH_RECIPES=OFF "$@" >"$work/log" 2>&1
}
says() { tr -s ' \n' ' ' <"$work/log" | grep -F -- "$1" >/dev/null || { cat "$work/log"; echo "does not say: $1"; exit 1; }; }
refused() { # WORDS CHOICE
  ! configure "-DLOCKSTEP_TORCH=$2" || { echo "configured with $2"; exit 1; }
  says "$1"
}
# A package torch as CMake sees it: only its configuration.
package() { # FOLDER VERSION FLAGS
  mkdir -p "$1/torch/share/cmake/Torch" "$1/torch/include"
  cat >"$1/torch/share/cmake/Torch/TorchConfig.cmake" <<EOF
set(TORCH_INSTALL_PREFIX $1/torch)
set(TORCH_INCLUDE_DIRS $1/torch/include)
set(TORCH_CXX_FLAGS "$3")
# As the real one: the system's folders would come first.
find_package(Caffe2 REQUIRED PATHS $1/torch/share/cmake/Caffe2)
find_library(c10_LIBRARY c10 PATHS $1/torch/lib)
find_library(TORCH_LIBRARY torch PATHS $1/torch/lib)
set(TORCH_LIBRARIES)
EOF
  mkdir -p "$1/torch/share/cmake/Caffe2" "$1/torch/lib"
  touch "$1/torch/share/cmake/Caffe2/Caffe2Config.cmake" "$1/torch/lib/libc10.so" "$1/torch/lib/libtorch.so"
  cat >"$1/torch/share/cmake/Torch/TorchConfigVersion.cmake" <<EOF
set(PACKAGE_VERSION $2)
set(PACKAGE_VERSION_COMPATIBLE TRUE)
EOF
}
new_abi=-D_GLIBCXX_USE_CXX11_ABI=1

configure
says "-- libtorch "

refused "LOCKSTEP_TORCH is '$work/nothing': a folder with libtorch, a Python with the package torch, or a version" "$work/nothing"
refused "build/torch/0.0.1 is not there: TORCH=0.0.1 scripts/setup.sh run makes it" 0.0.1
mkdir "$work/empty"
refused "$work/empty has no share/cmake/Torch/TorchConfig.cmake" "$work/empty"

package "$work/old" 1.12.0 $new_abi
refused "libtorch 1.12.0 of $work/old/torch/share/cmake/Torch: Lockstep takes 1.13 to 2.x" "$work/old"
package "$work/next" 3.0.1 $new_abi
refused "libtorch 3.0.1 of $work/next/torch/share/cmake/Torch: Lockstep takes 1.13 to 2.x" "$work/next"
package "$work/abi" 2.5.0 -D_GLIBCXX_USE_CXX11_ABI=0
refused "has the C++ ABI of before GCC 5" "$work/abi"

# A folder, and a Python that finds its package there; the headers of another fmt are not taken.
package "$work/two" 2.13.0 $new_abi
mkdir "$work/two/torch/include/fmt"
configure "-DLOCKSTEP_TORCH=$work/two" || { cat "$work/log"; exit 1; }
says "-- libtorch 2.13.0 of $work/two/torch"
says "part GLOO OFF: it needs Gloo's headers, which libtorch 2.13.0 does not bring"
[ "$work/build/fmt_of_system/fmt" -ef /usr/include/fmt ]
for entry in "c10_LIBRARY:FILEPATH=$work/two/torch/lib/libc10.so" "TORCH_LIBRARY:FILEPATH=$work/two/torch/lib/libtorch.so" \
  "Caffe2_DIR:PATH=$work/two/torch/share/cmake/Caffe2"; do
  grep -qxF "$entry" "$work/build/CMakeCache.txt" || { grep "^${entry%%=*}" "$work/build/CMakeCache.txt"; exit 1; }
done
# Back to the system's in the same folder: nothing of the other is left.
cmake "$work/build" -DLOCKSTEP_TORCH= >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
says "-- libtorch "
! grep -E '^(c10|TORCH)_LIBRARY.*'"$work" "$work/build/CMakeCache.txt" || exit 1
touch "$work/two/torch/__init__.py"
printf '#!/bin/sh\nPYTHONPATH=%s exec /usr/bin/python3 "$@"\n' "$work/two" >"$work/python"
chmod +x "$work/python"
configure "-DLOCKSTEP_TORCH=$work/python" || { cat "$work/log"; exit 1; }
says "-- libtorch 2.13.0 of $work/two/torch"
# Of a libtorch with CUDA, the toolkit is nvcc's own, also where nvcc in PATH is a script.
package "$work/cuda" 2.14.0 $new_abi
mkdir -p "$work/toolkit/include" "$work/tools"
touch "$work/cuda/torch/lib/libtorch_cuda.so" "$work/toolkit/include/cuda_runtime.h"
printf '#!/bin/sh\necho "#$ _HERE_=%s/bin" >&2\n' "$work/toolkit" >"$work/tools/nvcc"
chmod +x "$work/tools/nvcc"
unset CUDA_HOME CUDA_PATH
PATH=$work/tools:$PATH configure "-DLOCKSTEP_TORCH=$work/cuda" || { cat "$work/log"; exit 1; }
grep -qxF "CUDA_TOOLKIT_ROOT_DIR:PATH=$work/toolkit" "$work/build/CMakeCache.txt" || { echo "another toolkit"; exit 1; }
# One below the sources, as TORCH=VERSION has it.
mkdir -p "$source/build"
below=$(mktemp -d "$source/build/torch-XXXXXX")
trap 'rm -rf "$work" "$below"' EXIT
package "$below" 2.13.0 $new_abi
configure "-DLOCKSTEP_TORCH=$below" || { cat "$work/log"; exit 1; }
printf '#!/bin/sh\nexec /usr/bin/python3 -I -S "$@"\n' >"$work/python"
refused "has no package torch" "$work/python"
