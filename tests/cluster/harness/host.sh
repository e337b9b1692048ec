#!/usr/bin/env bash
# Process 1 of a host: host.sh NAME SHARED ADDRESS. When it dies, all processes of the host die.
set -euo pipefail
name=$1 SHARED=$2 address=$3 own=$2/hosts/$1
read -r pid _ </proc/self/stat # the segment's pid: its /proc is still mounted
hostname "$name"
mount -t proc proc /proc
source "$SHARED/root/tests/cluster/harness/scratch.sh"
# By its boot id every host is a separate machine.
cat /proc/sys/kernel/random/uuid >"$own/boot_id"
mount --bind "$own/boot_id" /proc/sys/kernel/random/boot_id
echo "$pid" >"$own/pid"
until [ -e "$own/linked" ]; do sleep 0.02; done
ip link set lo up
ip addr add "$address/24" dev eth0
ip addr add "fd10:1:1::${name#host}/64" dev eth0 nodad
ip link set eth0 up
/usr/sbin/sshd -f "$SHARED/ssh/sshd_config" -E "$own/sshd.log"
: >"$own/ready"
sleep infinity &
forever=$!
trap : CHLD TERM INT HUP
while :; do wait "$forever" || true; done # reaps the host's orphans, too
