#!/usr/bin/env bash
# Builds the core for a libtorch with CUDA and checks it on this machine's GPU:
#   scripts/gpu_check.sh [FOLDER]          results go to FOLDER, default build/gpu_check
# It needs nvcc, CMake, g++ and a Python with torch >= 2.11; in an archive of gpu_bundle.sh nothing
# else and no network. PYTHON names that Python, default python3. WERROR=ON makes warnings errors. It
# takes at most nine minutes:
#   1. the core, the GPU checks, the test of NCCL, the example trainer and the step benchmark;
#   2. gpu_checks: two ranks on one GPU by way of the host, NCCL, streams under load, data parallel
#      training, memory, mixed precision; the first of these under compute-sanitizer, where it runs;
#   3. the step of ResNet-50 and of a transformer of 25 million weights beside PyTorch's: without
#      communication, and with data parallel of one and two ranks.
# The end is FOLDER/gpu_check.json and a table. Exit code: 0; 1 if the build or a check failed; 2 after
# the build if there is no GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/gpu_check}")
python=${PYTHON:-python3}
build=$out/build
limit_s=${GPU_CHECK_LIMIT_S:-535}
begin=$SECONDS
mkdir -p "$out" || exit 1
: >"$out/results.jsonl"

left() { # seconds, at most $1
  local rest=$((limit_s - (SECONDS - begin)))
  [ $rest -lt "$1" ] && echo $((rest > 1 ? rest : 1)) || echo "$1"
}
fail() {
  echo "gpu_check: $*" >&2
  exit 1
}

version=$("$python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null) ||
  fail "$python has no package torch: PYTHON=... names one that has"
for tool in nvcc cmake g++; do command -v $tool >/dev/null || fail "$tool is not in PATH"; done

targets=(lockstep_core gpu_checks tensor_nccl_test own_trainer bench_gpu_step)
generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
deps=()
[ -d deps ] && deps=(-DCMAKE_PREFIX_PATH="$PWD/deps" -DOPENSSL_ROOT_DIR="$PWD/deps"
  -DOPENSSL_USE_STATIC_LIBS=ON -DLOCKSTEP_LIBDW_INCLUDE="$PWD/deps/include")
parts=()
for part in LAUNCHER DOCTOR ETCD MPI GLOO DATA RECIPES; do parts+=("-DLOCKSTEP_WITH_$part=OFF"); done
echo "gpu_check: builds with torch $version, log in $out/build.log"
{
  cmake -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
    -DLOCKSTEP_TORCH="$(command -v "$python")" -DLOCKSTEP_WITH_NCCL=ON -DLOCKSTEP_WERROR="${WERROR:-OFF}" "${parts[@]}" "${deps[@]}" &&
    timeout "$(left $((limit_s * 9 / 10)))" cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"
} >"$out/build.log" 2>&1 || {
  [ $? != 124 ] || fail "the build was not done after $((SECONDS - begin)) s: GPU_CHECK_LIMIT_S=N allows more than $limit_s s, and a second run goes on from there"
  grep -E 'error|Error' "$out/build.log" | head -5 >&2
  fail "the build failed after $((SECONDS - begin)) s; all of it is in $out/build.log"
}
build_s=$((SECONDS - begin))
echo "gpu_check: built in $build_s s"
bin=$build/bin
export LOCKSTEP_BIN_DIR=$bin
"$bin/gpu_checks" none 2>"$out/device.log" # exit code 2 without a device
if [ $? = 2 ]; then
  echo "gpu_check: there is no CUDA device: the build is done, nothing was run"
  exit 2
fi

status=0
checks() { # NAME COMMAND...: appends its JSON lines
  local name=$1 code
  shift
  timeout "$(left 150)" "$@" >"$out/$name.log" 2>&1
  code=$?
  grep '^{' "$out/$name.log" >>"$out/results.jsonl"
  [ $code = 0 ] || { status=1; echo "gpu_check: $name ended with $code; see $out/$name.log" >&2; }
}
test_of() { # NAME COMMAND...: one JSON line for its exit code
  local name=$1 code start=$SECONDS
  shift
  timeout "$(left 100)" "$@" >"$out/$name.log" 2>&1
  code=$?
  [ $code = 0 ] || status=1
  printf '{"check": "%s", "ok": %s, "seconds": %d, "note": "exit code %d"}\n' "$name" \
    "$([ $code = 0 ] && echo true || echo false)" $((SECONDS - start)) $code >>"$out/results.jsonl"
}
checks gpu_checks "$bin/gpu_checks"
test_of tensor_nccl_test "$bin/tensor_nccl_test"
if command -v compute-sanitizer >/dev/null && [ "$(left 100)" -ge 100 ]; then
  test_of sanitized_host_collectives compute-sanitizer --target-processes all --error-exitcode 9 \
    "$bin/gpu_checks" host_collectives
fi

peer() { # MODEL MODE RANKS
  "$python" - "$@" "$(left 60)" <<'PY' >>"$out/results.jsonl" 2>>"$out/peers.log"
import json, os, socket, subprocess, sys
model, mode, ranks, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
started = [subprocess.Popen([sys.executable, "bench/peers/ddp_step.py", model, mode, "60", "20", "cuda:0"],
                            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks),
                                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
                            stdout=subprocess.PIPE, text=True) for rank in range(ranks)]
try:
    line = started[0].communicate(timeout=limit)[0].strip().splitlines()[-1]
    for rank in started[1:]:
        rank.communicate(timeout=limit)
finally:
    for rank in started:
        rank.kill()
fields = dict(field.split("=") for field in line.split(",")[2:])
print(json.dumps({"peer": "PyTorch", "model": model, "ranks": ranks, "mode": mode,
                  "step_ms_min": float(fields["step_min_ms"]),
                  "step_ms_p50": float(fields["step_med_ms"])}))
PY
}
for model in resnet50 transformer25m; do
  for run in "independent 1" "ddp 1" "ddp 2"; do
    read -r mode ranks <<<"$run"
    checks "step_${model}_${mode}_$ranks" "$bin/bench_gpu_step" $model "$mode" "$ranks" 60 20
    peer $model "$mode" "$ranks" || status=1
  done
done
"$python" scripts/gpu_report.py "$out" "$build_s" $((SECONDS - begin)) "$limit_s" || status=1
exit $status
