# What the scripts beside this one share; read by them, not run.

# fail WHO TEXT: the one line that says why it ends here.
fail() {
  echo "$1: error: $2" >&2
  exit 1
}

# Gone when the script ends, however it does.
scratch=()
trap 'stop_reporting; [ ${#scratch[@]} = 0 ] || rm -rf "${scratch[@]}"' EXIT

# report_every SECONDS FUNCTION: calls FUNCTION again and again in the background, until this script ends or
# stop_reporting is called. Not on a terminal, where what runs shows by itself how far it is.
reporter=
report_every() {
  local seconds=$1 function=$2
  {
    # `read` waits without a process of its own, which would outlive this one. Nobody writes here.
    exec 9<> <(:)
    while true; do
      read -r -t "$seconds" -u 9 || true
      kill -0 $$ 2>/dev/null || exit # the script was killed
      "$function" || true
    done
  } &
  reporter=$!
}
stop_reporting() {
  [ -z "$reporter" ] || { kill "$reporter" && wait "$reporter"; } 2>/dev/null || true
  reporter=
}

# compilers_at_once: one a core, but no more than have 1.5 GiB of memory each; of which a control group may have less.
compilers_at_once() {
  local cores kib limit file fit
  cores=$(scripts/cores.sh)
  kib=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
  for file in "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.max" /sys/fs/cgroup/memory{.max,/memory.limit_in_bytes} \
    "/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)/memory.limit_in_bytes"; do
    if read -r limit 2>/dev/null <"$file" && [[ $limit =~ ^[0-9]+$ ]]; then kib=$((limit / 1024 < kib ? limit / 1024 : kib)); fi
  done
  fit=$((kib / 1572864))
  echo $((fit < 1 ? 1 : fit < cores ? fit : cores))
}

# full_disks FOLDER...: the places of these folders where less than 100 MiB are left, as words.
full_disks() {
  local folder
  for folder in "$@"; do
    [ -d "$folder" ] || continue
    df --output=avail,target -B1M "$folder" | awk 'NR == 2 && $1 < 100 { sub(/^ *[0-9]+ +/, ""); print }'
  done | sort -u | paste -sd, | sed 's/,/, /g'
}
