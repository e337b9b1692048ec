#!/usr/bin/env bash
# PyTorch's own examples under torchrun and under lockstep run: tests/clients/pytorch_examples.sh FOLDER
#
# FOLDER is a checkout of pytorch/examples. ELASTIC names one of pytorch/elastic, whose examples run, too.
# Copies of their programs run on CPUs by Gloo, with the same options under both launchers. Equal must be:
# exit code, restarts, each rank's standard output without times, and the bytes of what was saved.
# In "kill", the rank 1 gets kill -9 from outside, and the job goes on from its snapshot.
# ONLY=regex selects runs, such as "ddp_tutorial kill". CLIENTS_PYTHON names a Python that has pytorch_examples.txt;
# without it a virtual environment is made in build/pytorch_examples. SECONDS_EACH limits one run (300).
set -euo pipefail

# refuse TEXT: for wrong arguments.
refuse() {
  echo "pytorch_examples: error: $1" >&2
  exit 2
}
# checkout FOLDER REPOSITORY FILE: ends unless FOLDER has the FILE of REPOSITORY.
checkout() {
  [ -f "$1/$3" ] || refuse "$1 has no $3: it must be a checkout of $2"
}
[ $# = 1 ] || refuse "usage: tests/clients/pytorch_examples.sh FOLDER, a checkout of pytorch/examples"
checkout "$1" pytorch/examples distributed/ddp-tutorial-series/multigpu_torchrun.py
[ -z "${ELASTIC:-}" ] || checkout "$ELASTIC" pytorch/elastic examples/multi_container/echo.py
examples=$(realpath "$1")
elastic=$(realpath -m "${ELASTIC:-/nowhere}")

cd "$(dirname "$0")/../.."
. scripts/lib.sh
WHO=pytorch_examples
. tests/clients/launchers.sh

# Name of a program, then its modes.
programs=(
  "ddp_tutorial plain kill"
  "multinode plain kill"
  "ddp plain"
  "mingpt plain kill"
  "fsdp2 plain"
  "fsdp2_dcp plain"
  "tensor_parallel plain"
  "sequence_parallel plain"
  "fsdp_tp plain"
  "imagenet plain kill"
)
[ -z "${ELASTIC:-}" ] || programs+=("elastic_echo plain" "elastic_imagenet plain kill")

# Edits of the copies, by sed -E in each file of a program's folder. One that changes nothing is a fault.
seed='s/^import torch$/&; torch.manual_seed(0)/'                 # two runs shall draw equal data and weights
backend='s/backend="nccl"/backend="gloo"/'                       # no GPU: NCCL is for GPUs
count='s/return has_gpu and gpu_count >= min_gpus/return True/'  # no GPU: the program would end at once
device='s/torch\.accelerator\.current_accelerator\(\)/torch.device("cpu")/' # no GPU: this is None
index='/torch\.accelerator\.set_device_index\(rank\)$/d'         # no GPU to select
cuda='/torch\.cuda\.set_device\(/d'                              # the same
ids='s/, device_ids=\[[^]]*\]//'                                 # DDP on CPUs takes none
move='s/\.to\((rank|self\.gpu_id|self\.local_rank)\)/.to("cpu")/' # a number is a GPU
map='s/f"cuda:\{[a-z_.]+\}"/"cpu"/'                              # the snapshot's tensors, too
# The loss over one class is 0 whatever the weights are, so they would never change.
loss='s/F\.cross_entropy/F.mse_loss/'
# These programs print no number that depends on what they compute.
print='s/^( *)output\.sum\(\)\.backward\(\)$/\1loss = output.sum(); loss.backward(); print(i, loss.item())/'

free_port() {
  "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# describe NAME MODE: sets what is run, and what follows from it.
#   source      the folder that is copied, and that the program starts in
#   program     its file there, with arguments
#   options     of the launcher, as the program's README has them
#   ranks nodes of each node, and launchers
#   edits       of the copy
#   saved       pattern of the files that are compared
#   moment      "kill": an expression for the line of rank 0 after which rank 1 is killed
#   resumed     "kill": one for a line of the last attempt
describe() {
  options=(--standalone) ranks=2 nodes=1 edits=() saved='' moment='' resumed=''
  case $1 in
    ddp_tutorial)
      source=$examples/distributed/ddp-tutorial-series
      program=(multigpu_torchrun.py 20 5)
      edits=("$seed" "$backend" "$cuda" "$ids" "$move" "$map" "$loss")
      saved='snapshot.pt'
      # After the second snapshot 39 epochs follow without one: a time of seconds for the kill.
      [ "$2" = plain ] || program=(multigpu_torchrun.py 80 40)
      moment='^Epoch 40 \| Training snapshot saved' resumed='^Resuming training from snapshot at Epoch 40$'
      ;;
    multinode)
      describe ddp_tutorial "$2"
      program[0]=multinode.py
      ranks=1 nodes=2
      options=(--nnodes 2 --rdzv_id 7 --rdzv_backend c10d --rdzv_endpoint "127.0.0.1:$(free_port)" --local_addr 127.0.0.1)
      ;;
    ddp)
      source=$examples/distributed/ddp
      program=(example.py)
      options=(--nnodes=1 --rdzv_id=101 --rdzv_endpoint="localhost:$(free_port)")
      edits=("$seed" "$count" "$device" "$index" "$ids" "$move")
      ;;
    mingpt)
      source=$examples/distributed/minGPT-ddp
      # Small enough for two cores. Its text comes from the folder, not from the network.
      program=(mingpt/main.py data_config.path=mingpt/data/input.txt data_config.truncate=0.002
        data_config.block_size=32 gpt_config.n_layer=2 gpt_config.n_head=2 gpt_config.n_embd=32
        trainer_config.max_epochs=4 trainer_config.save_every=2 trainer_config.batch_size=8
        trainer_config.data_loader_workers=1 trainer_config.use_amp=False)
      edits=("$seed" "$count" "$device" "$index" "$ids" "$move")
      saved='gpt_snapshot.pt'
      moment='^Snapshot saved at epoch 2$' resumed='^Resuming training from snapshot at Epoch 2$'
      ;;
    fsdp2 | fsdp2_dcp)
      source=$examples/distributed/FSDP2
      program=(example.py)
      [ "$1" = fsdp2 ] || program+=(--dcp-api)
      options=()
      # PyTorch takes no CPU as device_id, which the program passes where it finds no GPU.
      edits=("$count" 's/, device_id=device\)/)/')
      saved='*_state_dict.pt'
      ;;
    tensor_parallel | sequence_parallel | fsdp_tp)
      source=$examples/distributed/tensor_parallelism
      program=("$1_example.py")
      ranks=4
      options=(--nnodes=1 --rdzv_id=101 --rdzv_endpoint="localhost:$(free_port)")
      edits=("$seed" "$count" 's/torch\.accelerator\.current_accelerator\(\)\.type/"cpu"/' "$print")
      # 32,000 words for 2,048 places a step, four times, are seconds on two cores.
      [ "$1" != fsdp_tp ] || edits+=('s/num_iterations = 10/num_iterations = 2/')
      ;;
    imagenet)
      source=$examples/imagenet
      program=(main.py -a resnet18 -j 1 -b 4 -p 1 --epochs 2 --seed 1 --no-accel --dist-url env:// --dist-backend gloo
        --resume checkpoint.pth.tar "$work/pictures")
      # The original runs on CPUs as it is. But there it makes no DDP of the model, and every rank
      # saves the same file at the same time. So a restart needs both edits.
      [ "$2" = plain ] || edits=(
        's/^( *)print\(.using CPU, this will be slow.\)/\1model = torch.nn.parallel.DistributedDataParallel(model)/'
        's/^( *)if not args.multiprocessing_distributed or .*/\1if args.rank == 0 or (args.multiprocessing_distributed/')
      [ "$2" = plain ] || program+=(--epochs 3) saved='*.pth.tar'
      moment='^Epoch: \[2\]\[1/' resumed="loaded checkpoint 'checkpoint.pth.tar' \(epoch 2\)"
      ;;
    elastic_echo)
      source=$elastic/examples/multi_container
      program=(echo.py)
      ;;
    elastic_imagenet)
      source=$elastic/examples/imagenet
      program=(main.py --arch resnet18 --batch-size 4 --print-freq 1 --epochs 2 --dist-backend gloo
        --checkpoint-file saved/checkpoint.pth.tar "$work/pictures")
      [ "$2" = plain ] || program+=(--epochs 3)
      # On a busy machine ranks may begin more than ten seconds apart.
      edits=("$seed" 's/timedelta\(seconds=10\)/timedelta(seconds=120)/' "$cuda" "$ids" "$map"
        '/model\.cuda\(device_id\)$/d' 's/\.cuda\(device_id(, non_blocking=True)?\)//')
      saved='*.pth.tar'
      moment='^Epoch: \[2\]\[0/' resumed='^=> start_epoch: 2,'
      ;;
  esac
  [ "$2" != plain ] || moment='' resumed=''
}

# draw_pictures FOLDER: noise in two classes, as ImageFolder takes them.
draw_pictures() {
  "$python" - "$1" <<'PYTHON'
import pathlib, random, sys
from PIL import Image
draw = random.Random(7)
for part, rows in ("train", 12), ("val", 4):
    for label in "ab":
        folder = pathlib.Path(sys.argv[1], part, label)
        folder.mkdir(parents=True)
        for row in range(rows):
            Image.frombytes("RGB", (64, 64), draw.randbytes(64 * 64 * 3)).save(folder / f"{row}.png")
PYTHON
}

# copy FOLDER: the program's folder there, edited. Sets why where an edit finds nothing.
copy() {
  local edit before files
  cp -r "$source" "$1"
  mapfile -t files < <(find "$1" -name '*.py')
  for edit in "${edits[@]}"; do
    before=$(cat "${files[@]}" | cksum)
    sed -E -i "$edit" "${files[@]}"
    [ "$before" != "$(cat "${files[@]}" | cksum)" ] || why="the edit $edit changes nothing in $source"
  done
}

# strike: kills rank 1 when rank 0 has printed the line of the moment.
strike() {
  local pid found=()
  until grep -qsE "$moment" "$folder"/logs/*/attempt_0/*/stdout.log; do
    kill -0 "${running[@]}" 2>/dev/null || return 0
    sleep 0.05
  done
  for pid in $(of_folder "$folder"); do
    grep -qsz '^RANK=1$' "/proc/$pid/environ" && found+=("$pid")
  done
  # The first one is the rank, the others are what it started. It may have ended: the count of restarts tells.
  [ ${#found[@]} = 0 ] || kill -KILL "$(ps -o pid= --sort=start_time -p "$(IFS=, && echo "${found[*]}")" | head -n 1)" || true
}

# result: what is compared, of the run in folder. A launcher that was stopped early may have made no logs.
result() {
  local node last rank file
  echo "exit code $(<"$folder/code")"
  echo "restarts $(find "$folder/logs" -name 'attempt_*' 2>/dev/null | sed 's/.*_//' | sort -n | tail -n 1)"
  # Ranks of several launchers may come in any order, so their lines do.
  for node in "$folder"/logs/*; do
    last=$({ find "$node" -name 'attempt_*' 2>/dev/null || true; } | sort -V | tail -n 1)
    for rank in "${last:-/nowhere}"/*; do
      [ -f "$rank/stdout.log" ] || continue
      # Times and numbers of processes differ, and the guide says how addresses do.
      sed -E -e 's/(Time|Data) +[0-9.]+ \( *[0-9.]+\)/\1/g' -e 's/^\[[0-9]+\]/[PID]/' -e 's/PID [0-9]+/PID/' \
        -e "s/'MASTER_(ADDR|PORT)': '[^']*'/MASTER_\1/g" -e "s/^/${rank##*/}: /" "$rank/stdout.log"
    done
  done | if [ "$nodes" = 1 ]; then cat; else sort; fi
  [ -z "$saved" ] || find "$folder/run" -name "$saved" | sort | while read -r file; do
    echo "saved ${file##*/} $(sha256sum <"$file" | cut -c1-16)"
  done
}

# run LAUNCHER NAME MODE: leaves result, code and left (processes) in the folder of this run.
run() {
  local node extra=() root=$PWD
  begin "$work/$2.$1"
  copy "$folder/run"
  cd "$folder/run"
  for ((node = 0; node < nodes; node++)); do
    [ "$nodes" = 1 ] || extra=(--node_rank $node)
    start "$1" "$3" -- "${options[@]}" "${extra[@]}" --nproc_per_node "$ranks" --max_restarts 1 \
      --log_dir "$folder/logs" --redirects 3 "${program[@]}"
  done
  cd "$root"
  [ "$3" = plain ] || strike
  finish
  result >"$folder/result"
}

failures=0
compare() {
  local name=$1 mode=$2 start=$SECONDS of ends=FAILED why="" restarts=0
  [ "$mode" = plain ] || restarts=1
  describe "$name" "$mode"
  for of in torchrun lockstep; do run $of "$name" "$mode"; done
  local theirs=$work/$name.torchrun ours=$work/$name.lockstep
  if [ -n "$why" ]; then
    :
  elif [ "$(<"$theirs/code")" != 0 ]; then
    why="torchrun $(ended "$theirs")"
  elif [ "$(<"$ours/code")" != 0 ]; then
    why="lockstep run $(ended "$ours")"
  elif ! grep -qx "restarts $restarts" "$theirs/result"; then
    why="torchrun: not $restarts restarts, but $(grep '^restarts' "$theirs/result" || true)"
  elif ! cmp -s "$theirs/result" "$ours/result"; then
    why="results differ: $(diff "$theirs/result" "$ours/result" | head -n 20 || true)"
  elif ! grep -qE '^[0-9]+: ' "$ours/result" || { [ -n "$saved" ] && ! grep -q '^saved' "$ours/result"; }; then
    why="nothing was printed or saved"
  elif [ -n "$resumed" ] && [ -z "$(sed 's/^[0-9]*: //' "$ours/result" | grep -E "$resumed")" ]; then
    why="the last attempt did not print $resumed"
  elif [ -n "$(<"$ours/left")" ]; then
    why="lockstep run left processes $(<"$ours/left")"
  else
    ends=ok
    why="exit code 0, $restarts restarts, $(grep -cE '^[0-9]+: ' "$ours/result") lines, $(grep -c '^saved' "$ours/result" || true) files"
  fi
  printf '%-18s %-6s %-7s %4d s  %s\n' "$name" "$mode" $ends $((SECONDS - start)) "$why"
  if [ $ends = FAILED ]; then
    failures=$((failures + 1))
    show_logs "$theirs" "$ours"
    tail -n 15 "$theirs"/logs/*/*/*/stderr.log "$ours"/logs/*/*/*/stderr.log 2>/dev/null || true
  fi
  rm -rf "$theirs" "$ours"
}

use_python build/pytorch_examples pytorch_examples.txt torch torchvision PIL hydra boto3 fsspec
make_work
draw_pictures "$work/pictures"
for of in "$examples" ${ELASTIC:+"$elastic"}; do
  # Not the commit of a repository around the folder.
  echo "$of: commit $(git --git-dir "$of/.git" rev-parse --verify --quiet HEAD 2>/dev/null || echo unknown)"
done
chosen=0
for entry in "${programs[@]}"; do
  read -r name modes <<<"$entry"
  for mode in $modes; do
    [[ "$name $mode" =~ ${ONLY:-.} ]] || continue
    chosen=$((chosen + 1))
    compare "$name" "$mode"
  done
done
[ $chosen -gt 0 ] || refuse "ONLY=$ONLY matches no run of tests/clients/pytorch_examples.sh"
[ $failures = 0 ] || fail $WHO "$failures of $chosen runs"
[ -n "${ELASTIC:-}" ] || echo "pytorch_examples: those of pytorch/elastic were not run: ELASTIC=FOLDER names a checkout"
echo "pytorch_examples: $chosen runs end the same under torchrun and lockstep run"
