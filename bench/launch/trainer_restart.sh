#!/bin/bash
# Time from the death by SIGKILL of one of two ranks of the CIFAR-10 trainer (ResNet-18) to its next
# start ("started": the checkpoint is read, the first step begins) and to the end of that step.
#
#   bench/launch/trainer_restart.sh [BUILD_DIR]        (default build/release)
#
# ROUNDS    kills (5)
# BATCH     images of a rank and step (4)
# OPTIONS   more settings, as for lockstep train -o ("")
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
ROUNDS=${ROUNDS:-5}
results=$(mktemp -d)
agent=
trap '[ -z "$agent" ] || kill "$agent" 2>/dev/null; rm -rf "$results"' EXIT
"$build/bin/lockstep" data cifar10 --generate --records 640 --dir "$results/data" >/dev/null 2>&1
export OMP_NUM_THREADS=1

for ((round = 1; round <= ROUNDS; round++)); do
  folder=$results/run$round
  "$build/bin/lockstep" run --raw --nproc_per_node 2 --max_restarts 1 -- "$build/bin/lockstep" train \
    --config "$root/configs/cls/resnet/resnet18_cifar10.yaml" -o train.dataset.data_dir="$results/data" \
    eval.dataset.data_dir="$results/data" train.ckpt_save_dir="$folder" train.ckpt_save_steps=4 \
    train.loader.batch_size="${BATCH:-4}" system.val_while_train=False train.max_steps=40 \
    ${OPTIONS:-} >"$results/output" 2>&1 &
  agent=$!
  until grep -qs '"step":10,' "$folder/metrics.jsonl"; do
    kill -0 $agent 2>/dev/null || { cat "$results/output" >&2; exit 1; }
    sleep 0.05
  done
  rank=$(pgrep -P $agent -x lockstep-train | tail -1)
  date +%s%N >"$results/killed"
  kill -KILL "$rank"
  wait $agent || { cat "$results/output" >&2; exit 1; }
  agent=
  python3 - "$folder" "$(cat "$results/killed")" <<'PY' >>"$results/ms"
import datetime, json, sys
folder, killed = sys.argv[1], int(sys.argv[2]) / 1e6
def first_after(file, kind, begin):
    for line in open(f"{folder}/{file}"):
        row = json.loads(line)
        at = datetime.datetime.fromisoformat(row["time"].replace("Z", "+00:00")).timestamp() * 1e3
        if at > begin and row["kind"] == kind:
            return at, row.get("step_ms", 0)
start, _ = first_after("events.jsonl", "restart", killed)
step, step_ms = first_after("metrics.jsonl", "train", start)
print(f"{start - killed:.0f} {step - killed:.0f} {step_ms:.0f}")
PY
done
awk '{print "killed", NR ": started", $1 " ms, first step", $2 " ms, of which the step", $3 " ms"}' "$results/ms"
median() { sort -n -k "$1,$1" "$results/ms" | awk -v field="$1" '{v[NR] = $field} END {print v[int((NR + 1) / 2)]}'; }
echo "median: started $(median 1) ms, first step $(median 2) ms, of which the step $(median 3) ms"
