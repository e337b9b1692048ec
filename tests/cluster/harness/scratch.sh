# Empty scratch folders, for the segment and for each host.
# shellcheck shell=bash
for folder in /tmp /dev/shm; do mount -t tmpfs -o mode=1777 tmpfs "$folder"; done
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/sshd
