#!/usr/bin/env bash
# Number of cores that the caller may keep busy: its usable CPUs, or fewer if its control group
# limits the time.
set -euo pipefail
cores=$(nproc)

# whole QUOTA PERIOD: the cores that correspond to this quota, at least one; there may be no quota.
whole() {
  local worth
  [[ $1 =~ ^[0-9]+$ && $2 =~ ^[1-9][0-9]*$ ]] || return 0
  worth=$((($1 + $2 - 1) / $2))
  [ "$worth" -ge "$cores" ] || cores=$((worth < 1 ? 1 : worth))
}
# Version 2: this group and its parents; a container sees only the outermost.
group=$(sed -n 's/^0:://p' /proc/self/cgroup)
while :; do
  if read -r quota period 2>/dev/null <"/sys/fs/cgroup$group/cpu.max"; then whole "$quota" "$period"; fi
  [ -n "${group#/}" ] || break
  group=${group%/*}
done
folder=/sys/fs/cgroup/cpu
if read -r quota 2>/dev/null <$folder/cpu.cfs_quota_us && read -r period 2>/dev/null <$folder/cpu.cfs_period_us; then
  whole "$quota" "$period"
fi
echo "$cores"
