#!/usr/bin/env bash
# Process 1 of a machine that run.sh made: enter.sh MACHINE CACHE WHO COMMAND... Mounts the usual
# file systems, makes MACHINE the root, and runs COMMAND in WHO's clone with WHO's environment.
set -euo pipefail
machine=$1 cache=$2 who=$3
shift 3
ccache_folder=${CCACHE_DIR:-$(ccache --get-config cache_dir 2>/dev/null || true)}
ccache_size=$(ccache --get-config max_size 2>/dev/null || echo 5G)

mount --make-rprivate /
mount --bind "$machine" "$machine"
cd "$machine"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs dev
mount -t tmpfs -o mode=755 tmpfs run
mkdir dev/pts dev/shm run/lock
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
for node in null zero full random urandom tty; do
  touch dev/$node
  mount --bind /dev/$node dev/$node
done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for number in 0 1 2; do ln -s /proc/self/fd/$number dev/$(sed -n $((number + 1))p <<<$'stdin\nstdout\nstderr'); done
mkdir -p "$cache/packages/partial" var/cache/apt/archives
mount --bind "$cache/packages" var/cache/apt/archives
settings=()
if [ -n "$ccache_folder" ] && [ -d "$ccache_folder" ]; then
  mkdir -p var/ccache
  mount --bind "$ccache_folder" var/ccache
  settings=(CCACHE_DIR=/var/ccache CCACHE_MAXSIZE="$ccache_size" CCACHE_TEMPDIR="/tmp/ccache-$who")
  # Every user may read the cache. Only its owner may write it, who may have come here through sudo.
  [ "$who" = root ] && [ -O "$ccache_folder" ] || settings+=(CCACHE_READONLY=1)
fi
for name in {http,https,no,all}_proxy; do
  [ -z "${!name:-}" ] || settings+=("$name=${!name}")
done
# A proxy must not reach hosts that the machine itself must not reach.
blocked=$(sed -n 's/^255[.]255[.]255[.]255 //p' etc/hosts)
[ -z "$blocked" ] || settings+=("no_proxy=${no_proxy:+$no_proxy,}$blocked")
hostname bare
mkdir -p old
pivot_root . old
umount -l /old

home=/root
[ "$who" = root ] || home=/home/$who
cd "$home/lockstep"
# Not exec: this shell is process 1, and reaps orphans.
setpriv --reuid "$who" --regid "$who" --init-groups env -i HOME="$home" USER="$who" LOGNAME="$who" LANG=C.UTF-8 \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" bash -c "$*" </dev/null
