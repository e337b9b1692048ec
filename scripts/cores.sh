#!/usr/bin/env bash
# How many cores whoever starts this may keep busy: those that it may run on, or fewer where its control group gets less time.
set -euo pipefail
cores=$(nproc)

# whole QUOTA PERIOD: the cores that this much time in each period is worth, at least one; a quota may be none.
whole() {
  local worth
  [[ $1 =~ ^[0-9]+$ && $2 =~ ^[1-9][0-9]*$ ]] || return 0
  worth=$((($1 + $2 - 1) / $2))
  [ "$worth" -ge "$cores" ] || cores=$((worth < 1 ? 1 : worth))
}
# Of version 2, this group's and those that hold it; in a container the outermost is the only one that is seen.
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
