# What the scripts of this folder share: a Python, and runs under torchrun or lockstep run. Sourced, after
# scripts/lib.sh, with WHO (the script's name, for errors). LOCKSTEP_BIN_DIR is the folder of lockstep.

here=$PWD/tests/clients
lockstep=${LOCKSTEP_BIN_DIR:-$PWD/$release/bin}/lockstep
[ -x "$lockstep" ] || fail "$WHO" "$lockstep is missing: make build"
lockstep=$(realpath -s "$lockstep") # runs have folders of their own

# use_python FOLDER REQUIREMENTS PACKAGE...: sets python to CLIENTS_PYTHON, or to a virtual environment in
# FOLDER that has REQUIREMENTS (a file's name here). Python must be able to find each PACKAGE.
use_python() {
  local folder=$1 requirements=$here/$2 found package
  python=${CLIENTS_PYTHON:-$PWD/$folder/bin/python}
  if [ -z "${CLIENTS_PYTHON:-}" ] && ! cmp -s "$requirements" "$folder/installed"; then
    # The file of what is installed comes last: an interrupted installation starts again.
    /usr/bin/python3 -m venv --clear "$folder"
    "$python" -m pip install --quiet --requirement "$requirements" ||
      fail "$WHO" "tests/clients/$2 cannot be installed; CLIENTS_PYTHON names a Python that has it"
    cp "$requirements" "$folder/installed"
  fi
  found=$(command -v "$python") || fail "$WHO" "$python is no program: CLIENTS_PYTHON names a Python"
  python=$(realpath -s "$found")
  for package in "${@:3}"; do
    "$python" -c 'import importlib.util as i, sys; sys.exit(not i.find_spec(sys.argv[1]))' "$package" ||
      fail "$WHO" "$python has no package $package: see tests/clients/$2"
  done
}

# make_work: sets work, a folder of this script that is removed at its end.
make_work() {
  work=$(mktemp -d "${TMPDIR:-/tmp}/lockstep_$WHO.XXXXXX")
  scratch+=("$work")
  mkdir "$work/tmp"
  export TMPDIR=$work/tmp # launchers make folders of logs there
}

# of_folder FOLDER: the processes whose environment names it.
of_folder() {
  grep -lsz "^CLIENT_FOLDER=$1\$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 || true
}

# sweep FOLDER: ends what is left of a run.
sweep() {
  local left
  left=$(of_folder "$1")
  # shellcheck disable=SC2086
  [ -z "$left" ] || kill -KILL $left 2>/dev/null || true
}

running=() # the launchers of this moment
folder=    # of their run
interrupted() {
  [ ${#running[@]} = 0 ] || { kill "${running[@]}"; wait "${running[@]}"; } 2>/dev/null || true
  [ -z "$folder" ] || sweep "$folder"
  exit 130
}
trap interrupted INT TERM HUP

# begin FOLDER: the folder of a run.
begin() {
  folder=$1
  mkdir "$folder" "$folder/tmp"
}

# start LAUNCHER MODE VARIABLE... -- ARGUMENT...: a launcher in the background, with these variables and
# arguments. A MODE other than plain is one with a restart. Its output is added to log.
start() {
  local launcher=("$lockstep" run) of=$1 mode=$2 variables=()
  shift 2
  while [ "$1" != -- ]; do variables+=("$1") && shift; done
  if [ "$of" = torchrun ]; then
    launcher=("$python" -m torch.distributed.run)
    # The store of torchrun 2.13 outlives a restart, and Gloo finds the addresses of dead ranks
    # there. The variable gives every attempt a store of its own, as lockstep run does.
    [ "$mode" = plain ] || variables+=(TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1)
  fi
  # One thread: the order of a sum must not depend on the launcher. The folder site lets Gloo's threads finish.
  env HOME="$work" CLIENT_FOLDER="$folder" TMPDIR="$folder/tmp" PYTHON_EXEC="$python" \
    PYTHONPATH="$here/site${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES= HF_HUB_OFFLINE=1 "${variables[@]}" \
    timeout --kill-after 10 "${SECONDS_EACH:-300}" "${launcher[@]}" "${@:2}" >>"$folder/log" 2>&1 </dev/null &
  running+=($!)
}

# finish: waits for the launchers. Leaves code (the last that is not 0) and left (processes) in the folder.
finish() {
  local pid code=0 left
  for pid in "${running[@]}"; do wait "$pid" || code=$?; done
  running=()
  echo $code >"$folder/code"
  for _ in {1..20}; do
    left=$(of_folder "$folder")
    [ -n "$left" ] || break
    sleep 0.1
  done
  # shellcheck disable=SC2086
  echo $left >"$folder/left"
  sweep "$folder"
}

# ended FOLDER: how the launchers of a run there ended, if not with 0.
ended() {
  local code
  code=$(<"$1/code")
  [ "$code" != 0 ] || return 0
  echo "ended with $code$([ "$code" != 124 ] || echo ": it was stopped after SECONDS_EACH, ${SECONDS_EACH:-300} s")"
}

# show_logs FOLDER...: the end of what launchers said there.
show_logs() {
  local of
  for of in "$@"; do
    echo "--- the end of ${of##*.}'s output"
    tail -n 25 "$of/log"
  done
}
