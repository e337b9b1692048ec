#!/bin/bash
# Training step of DistributedDataParallel beside its bound (ranks that train alone) and beside
# PyTorch's DDP over Gloo with the same libtorch. The three alternate, so that noise affects all
# alike.
#
# usage: bench/ddp/compare_peers.sh [--models "resnet50 mlp3m mlp50m"] [--rounds 5] [--bin DIR]
#   CC=NAME    congestion control of PyTorch's sockets (reno; needs root, see ../loopback.sh)
#   PYTHON     interpreter with torch (default /usr/bin/python3)
# Prints, per model, the median over the rounds of each median step, and ratios of images/s.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
models="resnet50 mlp3m mlp50m" rounds=5 bin=$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}/bin
while (($#)); do
  case $1 in
    --models) models=$2 ;;
    --rounds) rounds=$2 ;;
    --bin) bin=$2 ;;
    *) sed -n '2,8p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
python=${PYTHON:-/usr/bin/python3}
source "$root/bench/loopback.sh"
results=$(mktemp -d)
trap 'leave_loopback; rm -rf "$results"' EXIT

ours() { # model mode
  "$bin/lockstep-bench-ddp" --model "$1" --mode "$2" --json "$results/row.json" >/dev/null
  python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[0]["step_ms_p50"])' \
    "$results/row.json" >>"$results/$1.$2"
}

# In its own shell: our program would take its variables for a launcher's.
torch_ddp() ( # model: the slower rank's median step
  case $1 in
    resnet50) name=rn50 steps=6 warm=2 ;;
    mlp3m) name=mlp steps=150 warm=20 ;;
    *) name=$1 steps=12 warm=3 ;;
  esac
  export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 10000)) WORLD_SIZE=2
  export GLOO_SOCKET_IFNAME=lo PYTHONWARNINGS=ignore
  RANK=0 $over_loopback "$python" "$root/bench/peers/ddp_step.py" "$name" ddp 1 $steps $warm >"$results/rank0" &
  RANK=1 $over_loopback "$python" "$root/bench/peers/ddp_step.py" "$name" ddp 1 $steps $warm >"$results/rank1"
  wait $!
  sed -n 's/.*step_med_ms=\([0-9.]*\).*/\1/p' "$results/rank0" "$results/rank1" |
    sort -n | tail -1 >>"$results/$1.torch"
)

median() { sort -n "$1" | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

for model in $models; do
  for ((round = 1; round <= rounds; round++)); do
    ours "$model" independent
    ours "$model" ddp
    torch_ddp "$model"
  done
  alone=$(median "$results/$model.independent")
  ddp=$(median "$results/$model.ddp")
  line="$model: ddp $ddp ms, independent $alone ms, ddp/independent"
  line+=" $(awk "BEGIN {printf \"%.3f\", $alone / $ddp}")"
  if [ -f "$results/$model.torch" ]; then
    torch=$(median "$results/$model.torch")
    line+="; PyTorch DDP (Gloo under $loopback_cc) $torch ms, ddp is $(awk "BEGIN {printf \"%.2f\", $torch / $ddp}") times as fast"
  fi
  echo "$line"
done
