#!/usr/bin/env bash
# Installs what building, testing and running need on Debian 12. Safe to run again: it asks dpkg first and
# touches nothing that is there. One line per step.
set -euo pipefail

build=(g++ cmake ninja-build git make pkg-config ccache mold)
libraries=(libtorch-dev libopenblas0-openmp
  libyaml-cpp-dev nlohmann-json3-dev libfmt-dev libcli11-dev libgtest-dev libssl-dev libcurl4-openssl-dev libarchive-dev libgloo-dev libdw-dev
  libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev libjpeg-dev zlib1g-dev libpolyclipping-dev libgeos-dev liblmdb-dev libmatio-dev libpango1.0-dev libglib2.0-dev libfreetype-dev libfontconfig-dev fonts-dejavu-core
  ca-certificates)
tests=(python3 python3-torch python3-numpy python3-opencv python3-pyclipper python3-lmdb libopenmpi-dev openmpi-bin libmpich-dev mpich)
cluster=(iproute2 nftables util-linux openssh-server openssh-client slurmctld slurmd slurm-client munge etcd-server etcd-client faketime openmpi-bin mpich procps)
tools=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev iproute2 procps)

case "${1:-all}" in
  run) wanted=("${build[@]}" "${libraries[@]}") ;;
  test) wanted=("${build[@]}" "${libraries[@]}" "${tests[@]}" "${cluster[@]}") ;;
  cluster) wanted=("${build[@]}" "${libraries[@]}" python3 python3-torch "${cluster[@]}") ;;
  all) wanted=("${build[@]}" "${libraries[@]}" "${tests[@]}" "${cluster[@]}" "${tools[@]}") ;;
  *) echo "setup: error: unknown set '$1'; sets are run, cluster, test, all" >&2; exit 2 ;;
esac

# dpkg-query lists the installed ones; what is left is missing.
missing=$(comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
  <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null | awk '$2=="installed"{print $1}' | sort -u))
if [ -z "$missing" ]; then
  echo "setup: packages    all ${#wanted[@]} installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: error: not root and no sudo; install by hand:" $missing >&2; exit 1; }
  as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { # label command...: one line, and the end of the log only when it fails
  local label=$1 start=$SECONDS
  shift
  printf 'setup: %-11s ' "$label"
  if "$@" >"$log" 2>&1; then echo "done in $((SECONDS - start)) s"; else echo "failed"; tail -n 20 "$log" >&2; exit 1; fi
}
quietly index "${as_root[@]}" apt-get update -qq
# shellcheck disable=SC2086
quietly packages "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
echo "setup: installed  " $missing
