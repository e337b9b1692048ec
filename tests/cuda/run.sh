#!/usr/bin/env bash
# Lockstep with PyPI's libtorch for CUDA and NCCL, on a machine that need have no GPU: compiles with
# warnings as errors, links, loads, and passes what runs on a CPU. `scripts/setup.sh cuda` brings the
# libtorch (requirements.txt). What needs a GPU is in scripts/gpu_check.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib.sh
build=build/cuda
start=$SECONDS

# All that `make install` builds, what scripts/gpu_check.sh takes to a GPU, and tests of each layer
# that passes tensors on.
tests=(tensor_nccl_test tensor_test parallel_ddp_test checkpoint_test)
communicate=(lockstep-train lockstep-bench-collectives own_trainer bench_gpu_step gpu_checks tensor_nccl_test)
linked=("${communicate[@]}" lockstep-predict tensor_test parallel_ddp_test checkpoint_test)
targets=(lockstep_installed own_trainer bench_gpu_step gpu_checks "${tests[@]}")

[ -f build/torch/cuda/whole ] || fail cuda "build/torch/cuda is not there: scripts/setup.sh cuda brings it"
libtorch=$(realpath build/torch/cuda)
scripts/build.sh cuda "${targets[@]}"

# The build is the one that was meant.
torch_there=$(sed -n 's/^-- libtorch .* of //p' "$build/configure.log")
[[ $(realpath "$torch_there") == "$libtorch"/* ]] || fail cuda "configured with the libtorch of ${torch_there:-nowhere}, not of $libtorch"
for part in TORCH LAUNCHER DOCTOR ETCD NCCL DATA RECIPES; do
  grep -q "^LOCKSTEP_PARTS_ON:INTERNAL=.*\b$part\b" "$build/CMakeCache.txt" || fail cuda "the build has no part $part; $build/configure.log says why"
done
# fmt's own source, which programs link as an archive, is compiled as it comes.
commands=$(grep '^ *"command": .* -o \(lockstep\|apps\)/[^ ]*\.o ' "$build/compile_commands.json" | grep -v /lockstep_fmt_archive.dir/ || true)
compiled=0
while read -r command; do
  object=$build/$(sed 's/.* -o \([^ ]*\.o\) .*/\1/' <<<"$command")
  [ -f "$object" ] || continue # of a target that is not built here
  [[ $command == *" -Werror "* && $command != *" -Wno-error"* ]] || fail cuda "$object is compiled without -Werror"
  compiled=$((compiled + 1))
done <<<"$commands"
[ $compiled -gt 0 ] || fail cuda "no source of layers and programs is compiled"
echo "cuda: compiled  $compiled sources of layers and programs, warnings as errors"

# The loader finds all that a program needs, of this libtorch and its NCCL. c10d's process group of
# NCCL is taken from libtorch, and not left out, where ranks talk.
unset LD_LIBRARY_PATH LD_PRELOAD
for program in "${linked[@]}"; do
  file=$build/bin/$program
  grep -q 'NEEDED.*\[libtorch_cuda\.so\]' <<<"$(readelf -dW "$file")" || fail cuda "$program is not linked with libtorch_cuda.so"
  loaded=$(ldd "$file")
  missing=$(awk '/not found/ { print $1 }' <<<"$loaded" | paste -sd' ')
  [ -z "$missing" ] || fail cuda "$program cannot be loaded: there is no $missing"
  for library in libtorch_cuda.so libc10_cuda.so libnccl.so libcudart.so libcudnn.so; do
    path=$(awk -v name="$library" 'index($1, name) == 1 { print $3 }' <<<"$loaded")
    [ -n "$path" ] && [[ $(realpath "$path") == "$libtorch"/* ]] || fail cuda "$program takes $library from ${path:-nowhere}, not from $libtorch"
  done
done
for program in "${communicate[@]}"; do
  grep -q ' U c10d::ProcessGroupNCCL::ProcessGroupNCCL(' <<<"$(nm -DC --undefined-only "$build/bin/$program")" ||
    fail cuda "$program has no back end c10d:nccl: it does not refer to c10d::ProcessGroupNCCL"
done
echo "cuda: linked    ${#linked[@]} programs with libtorch_cuda and NCCL of ${torch_there#"$PWD/"}"

# What runs without a GPU. A program that looks for one must end in order where there is none.
code=0
said=$(LOCKSTEP_BIN_DIR=$PWD/$build/bin timeout 300 "$build/bin/gpu_checks" none 2>&1) || code=$?
if [ $code = 2 ]; then
  grep -q 'this machine has no CUDA device' <<<"$said" || fail cuda "gpu_checks does not say that there is no CUDA device: $said"
elif [ $code != 0 ]; then
  fail cuda "gpu_checks none ended with $code, not with 0 or, without a device, 2: $said"
fi
log=$(mktemp) && scratch+=("$log")
passed=0
for program in "${tests[@]}"; do
  # One test asks PyTorch for a file. Here is libtorch alone, without what Python takes to import it.
  GTEST_FILTER=-Weights.ReadsWhatPyTorchSaves timeout 600 tests/support/surroundings.sh "$PWD/$build" "$PWD" "$build/bin/$program" >"$log" 2>&1 || {
    code=$?
    cat "$log" >&2
    [ $code != 124 ] || fail cuda "$program was not done after 600 s"
    fail cuda "$program failed with this libtorch"
  }
  count=$(sed -n 's/^\[  PASSED  \] \([1-9][0-9]*\) tests\?\.$/\1/p' "$log")
  [ -n "$count" ] || fail cuda "$program ran no test"
  passed=$((passed + count))
done
echo "cuda: ran       gpu_checks and $passed tests of ${#tests[@]} programs"
echo "cuda: all passed in $((SECONDS - start)) s"
