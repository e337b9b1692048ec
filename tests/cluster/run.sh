#!/usr/bin/env bash
# Real launchers, hosts and services on this machine: tests/cluster/run.sh [FOLDER...]
#
# Hosts are Linux namespaces; see harness/segment.sh. Each folder of tests runs in its own segment, side by side. ONLY=regex selects tests by
# name, VERBOSE=1 shows their output; LOCKSTEP_BIN_DIR is the folder of the programs. Needs root:
# sudo must work without a password. With --possible it only checks whether this system allows
# hosts: otherwise a line gives the reason.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${LOCKSTEP_BIN_DIR:-}" ]; then
  . scripts/lib.sh
  export LOCKSTEP_BIN_DIR=$PWD/$release/bin
fi
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || {
    echo "cluster: error: hosts are made of namespaces, which takes root: run as root, or allow sudo without a password" >&2
    exit 1
  }
  exec sudo -n --preserve-env=ONLY,VERBOSE,LOCKSTEP_BIN_DIR "$0" "$@"
fi
start=$SECONDS
namespaces=(unshare --mount --uts --ipc --net --pid --fork --kill-child --mount-proc)
# Everything that harness/hosts.sh needs for a host.
why=$("${namespaces[@]}" bash -ec 'mount -t tmpfs tmpfs /srv; ip link add wire type bridge; ip link add one type veth peer name two
  unshare --net --uts --ipc --mount --time --monotonic 1 --boottime 1 --pid --fork --kill-child true' 2>&1) || {
  echo "cluster: error: hosts are made of namespaces with a bridge, which this system does not grant root: $(tail -n 1 <<<"$why")" >&2
  exit 1
}
[ "${1:-}" != --possible ] || exit 0

segments=()
# The kernel ends a segment with its first process: no teardown is needed.
end_all() { [ ${#segments[@]} = 0 ] || kill -KILL "${segments[@]}" 2>/dev/null || true; wait; }
trap 'end_all; exit 130' INT TERM HUP
[ $# -gt 0 ] || set -- launchers faults training
for folder in "$@"; do
  setpriv --pdeathsig KILL env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ONLY="${ONLY:-.}" VERBOSE="${VERBOSE:-}" LOCKSTEP_BIN_DIR="${LOCKSTEP_BIN_DIR:-}" \
    "${namespaces[@]}" bash tests/cluster/harness/segment.sh "tests/cluster/$folder"/*.sh &
  segments+=($!)
done
failed=0 none=0
for segment in "${segments[@]}"; do
  code=0
  wait "$segment" || code=$?
  case $code in 0) ;; 3) none=$((none + 1)) ;; *) failed=1 ;; esac
done
[ "$failed" = 0 ] || exit 1
[ "$none" -lt ${#segments[@]} ] || { echo "cluster: error: no test has a name that matches ONLY='${ONLY:-.}'" >&2; exit 1; }
echo "cluster: all passed in $((SECONDS - start)) s"
