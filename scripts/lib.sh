# Functions for the scripts in this folder; sourced, not run.

# fail WHO TEXT: prints one line with the reason, and exits.
fail() {
  echo "$1: error: $2" >&2
  exit 1
}

# TORCH names another libtorch than the system's: a folder, a Python that has the package torch, or a version of it (see
# cmake/LockstepFindTorch.cmake). What is built with it has a folder of its own.
LOCKSTEP_BUILD_SUFFIX=
if [[ ${TORCH:-} =~ ^[0-9]+\.[0-9]+(\.[0-9]+)?$ ]]; then
  LOCKSTEP_BUILD_SUFFIX=-torch-$TORCH
elif [ -n "${TORCH:-}" ]; then
  # A Python by its name alone is the one that the user's PATH has.
  [[ $TORCH == */* ]] || [ -e "$TORCH" ] || TORCH=$(command -v "$TORCH" || echo "$TORCH")
  [ ! -e "$TORCH" ] || TORCH=$(realpath -s "$TORCH")
  LOCKSTEP_BUILD_SUFFIX=-torch-$(cksum <<<"$TORCH" | cut -d' ' -f1)
fi
export TORCH=${TORCH:-} LOCKSTEP_BUILD_SUFFIX
release=build/release$LOCKSTEP_BUILD_SUFFIX

# Removed when the script ends, for whatever reason.
scratch=()
trap 'stop_reporting; [ ${#scratch[@]} = 0 ] || rm -rf "${scratch[@]}"' EXIT

# report_every SECONDS FUNCTION: calls FUNCTION repeatedly in the background, until this script ends
# or stop_reporting is called. Not used on a terminal, where commands show their own progress.
reporter=
report_every() {
  local seconds=$1 function=$2
  {
    # `read` waits without a separate process, which would outlive this one. Nothing writes here.
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

# compilers_at_once: one a core, but each needs 1.5 GiB of memory, which a control group may limit.
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

# full_disks FOLDER...: mount points of these folders with less than 100 MiB left, as text.
full_disks() {
  local folder
  for folder in "$@"; do
    [ -d "$folder" ] || continue
    df --output=avail,target -B1M "$folder" | awk 'NR == 2 && $1 < 100 { sub(/^ *[0-9]+ +/, ""); print }'
  done | sort -u | paste -sd, | sed 's/,/, /g'
}
