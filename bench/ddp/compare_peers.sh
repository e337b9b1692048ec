#!/bin/bash
# Training step of DistributedDataParallel beside PyTorch's over Gloo with the same libtorch, and
# both beside their bound: the same two processes that train alone. All alternate, so that noise
# affects all alike.
#
# usage: bench/ddp/compare_peers.sh [--models "resnet50 mlp3m mlp50m transformer25m"] [--rounds 5]
#          [--settings "ddp ddp:view ddp:static ddp:whole"] [--build DIR]
#   --settings  of PyTorch's DDP (bench/peers/ddp_step.py); the best of them counts
#   TORCH=NAME  libtorch, as for make: programs and Python of that build
#   CC=NAME     congestion control of PyTorch's sockets (reno; needs root, see ../loopback.sh)
#   PYTHON      interpreter with torch (default: the one of TORCH=VERSION, else /usr/bin/python3)
# Prints a row per model: medians over the rounds of each one's median step, and ratios.
set -eu
models="resnet50 mlp3m mlp50m transformer25m" rounds=5 settings="ddp ddp:view ddp:static ddp:whole" build=
while (($#)); do
  case $1 in
    --models) models=$2 ;;
    --rounds) rounds=$2 ;;
    --settings) settings=$2 ;;
    --build) build=$2 ;;
    *) sed -n '2,13p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
source "$(dirname "$0")/../peers.sh" $build
source "$root/bench/loopback.sh"
results=$(mktemp -d)
trap 'leave_loopback; rm -rf "$results"' EXIT

ours() { # model mode
  "$build/bin/lockstep-bench-ddp" --model "$1" --mode "$2" --json "$results/row.json" >/dev/null
  python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[0]["step_ms_p50"])' \
    "$results/row.json" >>"$results/$1.lockstep.$2"
}

# In its own shell: our program would take its variables for a launcher's.
pytorch() ( # model mode: the slower rank's median step
  case $1 in
    resnet50) steps=6 warm=2 ;;
    mlp3m) steps=150 warm=20 ;;
    transformer25m) steps=10 warm=2 ;;
    *) steps=12 warm=3 ;;
  esac
  export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 10000)) WORLD_SIZE=2
  export GLOO_SOCKET_IFNAME=lo PYTHONWARNINGS=ignore
  for rank in 0 1; do
    RANK=$rank $over_loopback "$python" "$root/bench/peers/ddp_step.py" "$1" "$2" $steps $warm >"$results/rank$rank" 2>"$results/errors$rank" &
  done
  wait -n && wait -n || { cat "$results"/errors? >&2; exit 1; }
  sed -n 's/.*step_med_ms=\([0-9.]*\).*/\1/p' "$results/rank0" "$results/rank1" |
    sort -n | tail -1 >>"$results/$1.pytorch.$2"
)

median() { sort -n "$1" | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
best_setting() { # model
  for setting in $settings; do
    echo "$(median "$results/$1.pytorch.$setting") $setting"
  done | sort -n | head -1
}

echo "PyTorch $("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null); 2 ranks of one thread; milliseconds a step; Gloo under $loopback_cc"
printf '%-15s %9s %11s %6s  %9s %-11s %11s %6s  %8s %10s\n' model lockstep alone share PyTorch setting alone share speed-up plain-loop
for model in $models; do
  for ((round = 1; round <= rounds; round++)); do
    ours "$model" independent
    ours "$model" ddp
    pytorch "$model" independent
    for setting in $settings; do pytorch "$model" "$setting"; done
  done
  read -r torch_ddp setting <<<"$(best_setting "$model")"
  awk -v model="$model" -v setting="$setting" -v ddp="$(median "$results/$model.lockstep.ddp")" -v alone="$(median "$results/$model.lockstep.independent")" \
    -v torch="$torch_ddp" -v torch_alone="$(median "$results/$model.pytorch.independent")" 'BEGIN {
      printf "%-15s %9.2f %11.2f %6.3f  %9.2f %-11s %11.2f %6.3f  %6.2f x %8.2f x\n",
        model, ddp, alone, alone / ddp, torch, setting, torch_alone, torch_alone / torch, torch / ddp, torch_alone / alone }'
done
