#!/usr/bin/env bash
# Installs all packages for building, testing and running on Debian 12. Safe to run again: it
# queries dpkg first and keeps installed packages. One line per step.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

build=(g++ cmake ninja-build git make pkg-config ccache mold)
# Libraries that the core links; the other parts need the rest (docs/guide/installing.md).
core=(libtorch-dev libopenblas0-openmp nlohmann-json3-dev libfmt-dev libssl-dev libdw-dev ca-certificates)
libraries=("${core[@]}"
  libyaml-cpp-dev libgtest-dev libgmock-dev libcurl4-openssl-dev libarchive-dev libgloo-dev
  libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev libjpeg-dev zlib1g-dev libpolyclipping-dev libgeos-dev liblmdb-dev libmatio-dev libpango1.0-dev libglib2.0-dev libfreetype-dev libfontconfig-dev fonts-dejavu-core)
tests=(clang-14 clang-format-14 python3 python3-yaml python3-jsonschema python3-torch python3-numpy python3-opencv python3-pyclipper python3-lmdb libopenmpi-dev openmpi-bin libmpich-dev mpich)
cluster=(iproute2 nftables util-linux openssh-server openssh-client slurmctld slurmd slurm-client munge etcd-server etcd-client faketime openmpi-bin mpich procps)
tools=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev iproute2 procps)
# To make a bare machine and an image, for tests/bare.
bare=(debootstrap util-linux buildah)
# The one of tests/cuda, which the preset cuda builds with.
cuda_folder=

case "${1:-all}" in
  core) wanted=("${build[@]}" "${core[@]}") ;;
  run) wanted=("${build[@]}" "${libraries[@]}") ;;
  test) wanted=("${build[@]}" "${libraries[@]}" "${tests[@]}" "${cluster[@]}") ;;
  cluster) wanted=("${build[@]}" "${libraries[@]}" python3 python3-torch libopenmpi-dev "${cluster[@]}") ;;
  all) wanted=("${build[@]}" "${libraries[@]}" "${tests[@]}" "${cluster[@]}" "${tools[@]}" "${bare[@]}") ;;
  bare) wanted=("${bare[@]}") ;;
  cuda)
    [ -z "$TORCH" ] || { echo "setup: error: TORCH is '$TORCH', and the set cuda has a libtorch of its own: tests/cuda/requirements.txt" >&2; exit 2; }
    wanted=("${build[@]}" "${libraries[@]}" python3-venv)
    cuda_folder=build/torch/cuda
    ;;
  *) echo "setup: error: unknown set '$1'; sets are core, run, cluster, test, bare, cuda, all" >&2; exit 2 ;;
esac

# One of PyPI's: TORCH=VERSION.
torch_folder=
if [[ ${TORCH:-} =~ ^[0-9]+\.[0-9]+(\.[0-9]+)?$ ]]; then
  torch_folder=build/torch/$TORCH
  wanted+=(python3-venv)
fi
# For each of pip's installations, in seconds.
limit_s=${SETUP_LIMIT_S:-3600}
[[ $limit_s =~ ^[1-9][0-9]{0,6}$ ]] || { echo "setup: error: SETUP_LIMIT_S is '$limit_s', and not a number of seconds from 1" >&2; exit 2; }
# pip_install FOLDER NAME ARGUMENT...: an environment of its own. Its file `whole`, which the caller makes, comes last: an
# interrupted installation starts again.
pip_install() {
  local folder=$1 name=$2 start=$SECONDS pip_log code=0
  shift 2
  pip_log=$(mktemp) && scratch+=("$pip_log" "$folder/download")
  rm -rf "$folder"
  report_every 10 pip_progress
  # What pip downloads goes to the same disk, which has room for it, and counts as progress. In the
  # foreground, where Ctrl-C reaches pip.
  {
    /usr/bin/python3 -m venv "$folder" && mkdir "$folder/download" &&
      TMPDIR=$(realpath "$folder")/download timeout --foreground -k 10 "$limit_s" "$folder/bin/python" -m pip install --progress-bar off "$@"
  } >"$pip_log" 2>&1 || code=$?
  stop_reporting
  [ "$code" = 0 ] || pip_failed
  rm -rf "$folder/download"
  echo "setup: torch       $name in $folder after $((SECONDS - start)) s"
}
pip_progress() { # of the pip_install that started it
  local doing size
  doing=$(sed -nE 's#^ *Downloading ([^ ]*/)?([A-Za-z0-9_.]+)-[0-9].*#downloading \2#p; s#^Installing collected packages.*#unpacking#p' "$pip_log" | tail -n 1)
  size=$(du -sm "$folder" 2>/dev/null | cut -f1)
  echo "setup: torch       ${doing:-preparing}, ${size:-0} MiB so far, after $((SECONDS - start)) s"
}
# Prints the cause of a failed pip_install in one line. Without an index pip says at the end that
# there is no such version; the lines above tell, but name hosts.
pip_failed() {
  local said where wanted
  said=$(grep -m1 -oP '(^ERROR: (?!Exception)|No space left).*' "$pip_log" || tail -n 1 "$pip_log")
  where=$(grep -m1 -oE 'Temporary failure in name resolution|Name or service not known|No address associated|Network is unreachable|No route to host|Connection refused|Connection reset|[Tt]imed out' "$pip_log" ||
    grep -m1 -oE '(Proxy|SSL|NewConnection|ConnectTimeout|ReadTimeout|MaxRetry)Error' "$pip_log" || true)
  where=${where%%$'\n'*}
  if [ "$code" = 124 ] || [ "$code" = 137 ]; then
    fail setup "$name was not installed within $limit_s s${where:+ ($where)}; if the network is slow, SETUP_LIMIT_S=SECONDS allows more"
  elif [ -n "$where" ] && [[ $said == *'from versions: none'* || $said == *'ConnectionPool('* || $said == *"$where"* ]]; then
    wanted=$(sed -nE 's/.*satisfies the requirement ([^ ;]+).*/\1/p' <<<"$said")
    wanted="no package index can be reached for ${wanted:-$name}"
    [[ $said == *'requirement'* ]] || ! grep -q '^ *Downloading ' "$pip_log" || wanted="the download of $name broke off"
    fail setup "$wanted ($where); if there is a proxy, set HTTPS_PROXY, and another index is a setting of pip: PIP_INDEX_URL"
  fi
  fail setup "$name cannot be installed into $folder: ${said:0:200}"
}
bring_torch() {
  if [ -n "$torch_folder" ] && [ ! -f "$torch_folder/whole" ]; then
    pip_install "$torch_folder" "torch $TORCH" "torch==$TORCH" "$(grep '^numpy==' bench/peers/requirements.txt)"
    touch "$torch_folder/whole"
  fi
  [ -z "$cuda_folder" ] || bring_cuda
}
# 4.6 GiB, a download of minutes: kept in the user's cache folder, of which each clone has a link.
bring_cuda() {
  local cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lockstep list=tests/cuda/requirements.txt kept toolkit
  kept=$cache/torch-cuda-$(cksum <"$list" | cut -d' ' -f1)
  mkdir -p "$cache" build/torch
  exec 8>"$cache/torch-cuda.lock"
  if ! flock -n 8; then
    echo "setup: torch       waiting for another scripts/setup.sh, which has $cache/torch-cuda.lock"
    flock -w "$limit_s" 8 || fail setup "another scripts/setup.sh has had $cache/torch-cuda.lock for $limit_s s"
  fi
  if [ ! -f "$kept/whole" ]; then
    pip_install "$kept" "$(sed -n 's/^torch===/torch /p' "$list") with CUDA" --no-deps --no-compile --no-cache-dir -r "$list" 8>&-
    # The packages share a folder that is laid out as a toolkit, but for these.
    toolkit=$(realpath "$kept"/lib/python3*/site-packages/nvidia/cu[0-9]*)
    ln -s lib "$toolkit/lib64"
    ln -s "$(basename "$toolkit"/lib/libcudart.so.*)" "$toolkit/lib/libcudart.so"
    ln -s "$toolkit" "$kept/toolkit"
  fi
  touch "$kept/whole"
  # Those of other lists that nobody has used for a month.
  find "$cache" -mindepth 2 -maxdepth 2 -path '*/torch-cuda-*/whole' -mtime +30 -printf '%h\0' | xargs -0r rm -rf
  flock -u 8
  if [ ! "$cuda_folder" -ef "$kept" ]; then
    rm -rf "$cuda_folder" build/cuda # a build with the one before
    ln -s "$kept" "$cuda_folder"
  fi
}

# dpkg-query lists the installed ones; the rest is missing.
missing=$(comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
  <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null | awk '$2=="installed"{print $1}' | sort -u))
if [ -z "$missing" ]; then
  echo "setup: packages    all ${#wanted[@]} installed"
  bring_torch
  exit 0
fi

command -v apt-get >/dev/null || fail setup "there is no apt-get here; packages are missing, by their names in Debian 12: $(echo $missing)"
as_root=()
by_hand="apt-get install $(echo $missing)"
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail setup "packages are missing, and there is neither root nor sudo here; let somebody with either run: $by_hand"
  # A user at a terminal can enter a password; nobody else can.
  if ! sudo -n true 2>/dev/null && ! { [ -t 0 ] && sudo -v; }; then
    fail setup "packages are missing, and sudo does not let $(id -un) install them; let somebody whom it lets run: $by_hand"
  fi
  as_root=(sudo)
fi
log=$(mktemp 2>/dev/null) || fail setup "${TMPDIR:-/tmp} cannot be written: is it there, and is there space left?"
index_log=$log.index
scratch=("$log" "$index_log")

# unreachable FILE...: the first line about an unreachable registry.
unreachable() {
  grep -hoiE "(temporary failure|could not|unable to|cannot|connection) [^.]*(resolv|connect|timed out|refused)[^.]*.{0,60}" "$@" | head -n 1 || true
}
# Prints the cause of a failed apt-get and its remedy in one line: from apt-get's own message, else
# from possible reasons.
cause() {
  local full where own
  full=$(full_disks / /var/cache/apt/archives "${TMPDIR:-/tmp}")
  where=$(unreachable "$log")
  # apt-get only reports an unknown package, and has no index.
  own=$(grep '^E: ' "$log" | grep -vE 'Unable to locate package|has no installation candidate' || true)
  if [ -z "$where$own" ] && ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
    where=$(unreachable "$index_log")
    where=${where:-$(grep -m1 -oi 'failed to fetch .*' "$index_log" || true)}
  fi
  if grep -qiE 'no space left|enough free space' "$log"; then
    fail setup "no space left${full:+ on $full} for packages, which take 2 GiB"
  elif [ -n "$where" ]; then
    fail setup "no package registry can be reached (${where:0:120}); if there is a proxy, say so to apt: Acquire::http::Proxy"
  elif grep -q 'Could not get lock\|Unable to acquire the dpkg' "$log"; then
    fail setup "another program is installing packages and was not done within five minutes: $(grep -m1 -oE 'held by process.*' "$log" || true)"
  elif [ -n "$full" ] && [ -z "$own" ]; then
    fail setup "no space left on $full for packages, which take 2 GiB"
  fi
  tail -n 20 "$log" >&2
  fail setup "apt-get failed: $(grep -m1 '^E: ' "$log" | cut -c4- || true)"
}

progress() { # apt's newest status line: kind:package:percent:text
  local kind percent text
  IFS=: read -r kind _ percent text < <(grep -aE '^(dl|pm)status:' "$log" | tail -n 1)
  [ -n "${percent:-}" ] || return 0
  [ "$kind" = dlstatus ] && text=downloading
  echo "setup: packages    ${percent%.*} %, ${text,}, after $((SECONDS - start)) s"
}
start=$SECONDS
proxies=() # sudo does not pass these on
for name in http_proxy https_proxy no_proxy; do [ -z "${!name:-}" ] || proxies+=("$name=${!name}"); done
apt=("${as_root[@]}" env "${proxies[@]}" DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq -o DPkg::Lock::Timeout=300 -o APT::Status-Fd=1)
# A missing index only matters if packages then fail: one of several registries may be down.
"${apt[@]}" update >"$index_log" 2>&1 || true
echo "setup: index       done in $((SECONDS - start)) s"
start=$SECONDS
: >"$log"
report_every 10 progress
# shellcheck disable=SC2086
"${apt[@]}" install -y --no-install-recommends $missing >"$log" 2>&1 || cause
stop_reporting
echo "setup: packages    done in $((SECONDS - start)) s"
echo "setup: installed  " $missing
bring_torch
