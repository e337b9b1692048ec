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
      "$function" || true
    done
  } &
  reporter=$!
}
stop_reporting() {
  [ -z "$reporter" ] || { kill "$reporter" && wait "$reporter"; } 2>/dev/null || true
  reporter=
}

# free_gib FOLDER: whole GiB that are free where FOLDER is.
free_gib() { df --output=avail -B1G "$1" | tail -n 1 | tr -d ' '; }

# full_disks FOLDER...: the places of these folders where less than 100 MiB are left, as words.
full_disks() {
  local folder
  for folder in "$@"; do
    [ -d "$folder" ] || continue
    df --output=avail,target -B1M "$folder" | awk 'NR == 2 && $1 < 100 { sub(/^ *[0-9]+ +/, ""); print }'
  done | sort -u | paste -sd, | sed 's/,/, /g'
}
