# Checks that nothing is left: processes, files in /tmp and /dev/shm, ports.
# shellcheck shell=bash
# Only the segment's first shell calls these: it sees all processes and starts none during the
# check.

declare -A KEPT=() # processes that belong to the hosts and services
keep() { # all that exist now
  local folder
  for folder in /proc/[0-9]*; do KEPT[${folder#/proc/}]=1; done
}

# STRAYS: processes that are neither kept nor ended.
find_strays() {
  local folder pid
  STRAYS=()
  while read -r pid; do KEPT[$pid]=1; done <"$SHARED/services" # started by a test
  for folder in /proc/[0-9]*; do
    pid=${folder#/proc/}
    [ -n "${KEPT[$pid]:-}" ] || gone "$pid" || STRAYS+=("$pid")
  done
}

# A line for each file in the scratch folders and for each listening socket, on every host.
files_and_ports() {
  local name
  for name in head $(hosts_up); do
    on "$name" sh -c 'find /tmp /dev/shm -xdev -mindepth 1 -printf "file %p\n"; ss -Hltn | awk "{print \"port\", \$4}"' |
      sort -u | sed "s/^/$name /"
  done
}

# Files that other launchers are known to leave in a scratch folder are removed, and are no failure.
launcher_leaves() { echo "file $1" >>"$SHARED/expected"; } # PATH_PREFIX
nothing_added() { [ -z "$(added | grep -vf "$SHARED/expected")" ]; }
added() { files_and_ports | comm -13 "$SHARED/before" -; }

# True if everything is as before within 20 s; else prints the leftovers, and removes them.
nothing_left() {
  local pid end=$((SECONDS + 20)) clean=1
  find_strays
  while [ ${#STRAYS[@]} -gt 0 ] && [ "$SECONDS" -lt "$end" ]; do
    read -rt 0.05 <>"$SHARED/never" # waits, without a process
    find_strays
  done
  for pid in "${STRAYS[@]}"; do
    echo "  left over: process $pid: $(tr '\0' ' ' 2>&1 <"/proc/$pid/cmdline")"
    clean=0
    kill -KILL "$pid" 2>/dev/null
  done
  until_true 10 nothing_added || { clean=0 && added | grep -vf "$SHARED/expected" | sed 's/^/  left over: /'; }
  added | while read -r name kind what; do [ "$kind" != file ] || on "$name" rm -rf "$what"; done
  [ "$clean" = 1 ]
}
