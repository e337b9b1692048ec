# Hosts: separate namespaces for network, names, processes, shared memory, mounts and time since
# boot.
# shellcheck shell=bash
# hostI has the address 10.1.1.I (and as sixI, with IPv6 alone, fd10:1:1::I), eth0, and its own
# /proc, /tmp and /dev/shm. `head`, this segment itself, has 10.1.1.254.
#
#   host_boot I               starts hostI (with sshd); again after host_off
#   on hostI COMMAND...       runs there; ends when its caller does
#   host_off I                power off: silence first, then every process dies
#   host_cut I | host_heal I  the link carries nothing | again; the host still sees a carrier
#   pair_cut I J | pair_heal  these two do not reach each other; all others do
#   host_pause I | host_resume I
#   pids_on I PATTERN         processes whose command line matches; pids as the segment sees them

NETWORK=10.1.1
host_pid() { cat "$SHARED/hosts/host$1/pid"; }
hosts_up() { local folder; for folder in "$SHARED"/hosts/*/ready; do [ ! -e "$folder" ] || basename "$(dirname "$folder")"; done; }

# Shared by all hosts: the wire between them, names, ssh without questions.
segment_up() {
  local i
  ip link set lo up
  ip link add wire type bridge
  ip link set wire up
  ip addr add "$NETWORK.254/24" dev wire
  {
    echo "127.0.0.1 localhost"
    echo "$NETWORK.254 head"
    for i in {1..16}; do echo "$NETWORK.$i host$i"; done
    for i in {1..16}; do echo "fd10:1:1::$i six$i"; done
  } >"$SHARED/etc/hosts"
  mount --bind "$SHARED/etc/hosts" /etc/hosts
  : >"$SHARED/etc/resolv.conf"
  mount --bind "$SHARED/etc/resolv.conf" /etc/resolv.conf
  mkfifo "$SHARED/never"
  : >"$SHARED/services"
  ssh_keys
}

host_boot() { # I
  local name=host$1 folder=$SHARED/hosts/host$1
  mkdir -p "$folder"
  rm -f "$folder"/{pid,ready,linked}
  # Hosts were booted at different times, so their monotonic clocks are unrelated.
  setsid unshare --net --uts --ipc --mount --time --monotonic $(($1 * 100000)) --boottime $(($1 * 100000)) --pid --fork --kill-child \
    bash "$HARNESS/host.sh" "$name" "$SHARED" "$NETWORK.$1" >"$folder/log" 2>&1 </dev/null &
  echo $! >>"$SHARED/services"
  until_true 30 test -s "$folder/pid" || fail "$name did not start: $(cat "$folder/log")"
  # The same address on the wire after every start: the others cache it.
  ip link add "$name" type veth peer name eth0 address "02:00:00:00:00:$(printf %02x "$1")" netns "$(host_pid "$1")"
  ip link set "$name" master wire up
  : >"$folder/linked"
  until_true 30 test -e "$folder/ready" || fail "$name did not start: $(cat "$folder/log")"
  host_pids "$1" >>"$SHARED/services"
}

on() { # hostI|head COMMAND...
  local name=$1
  shift
  if [ "$name" = head ]; then "$@"; return; fi
  enter "${name#host}"
  "${ENTER[@]}" "$@"
}
enter() { # I: sets ENTER to the words before a command
  ENTER=(nsenter -t "$(host_pid "$1")" -n -u -i -m -T -p -- setpriv --pdeathsig KILL
    env HOSTNAME="host$1" sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$PWD")
}

# All processes of a host; pids as this segment sees them.
host_pids() { # I
  local namespace folder
  namespace=$(readlink "/proc/$(host_pid "$1")/ns/pid") || return 0
  for folder in /proc/[0-9]*; do
    [ "$(readlink "$folder/ns/pid")" != "$namespace" ] || echo "${folder#/proc/}"
  done 2>/dev/null | sort -n # forked ranks come after the fork server
}
pids_on() { # I PATTERN
  local pid
  for pid in $(host_pids "$1"); do
    ! tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -Eq -- "$2" || echo "$pid"
  done
}

host_cut() { ip link set "host$1" nomaster; }
host_heal() { ip link set "host$1" master wire; }
pair_cut() { bridge link set dev "host$1" isolated on && bridge link set dev "host$2" isolated on; }
pair_heal() { bridge link set dev "host$1" isolated off && bridge link set dev "host$2" isolated off; }
host_off() {
  host_cut "$1"
  kill -KILL "$(host_pid "$1")"
  ip link del "host$1" 2>/dev/null || true
  rm "$SHARED/hosts/host$1/ready"
}
hosts_restore() { # whatever a test cut or switched off works again
  local folder i
  for folder in "$SHARED"/hosts/host*; do
    i=${folder##*host}
    if [ -e "$folder/ready" ]; then host_heal "$i"; else host_boot "$i"; fi
    bridge link set dev "host$i" isolated off
  done
}
host_pause() { # everything but its process 1
  local pid
  for pid in $(host_pids "$1"); do [ "$pid" = "$(host_pid "$1")" ] || kill -STOP "$pid" 2>/dev/null || true; done
}
host_resume() { resume_with_callers $(host_pids "$1"); }
resume_with_callers() { # PID...: `on` stops with its command
  local pid
  for pid in "$@"; do kill -CONT "$pid" "$(ps -o ppid= "$pid" | tr -d ' ')" 2>/dev/null || true; done
}
