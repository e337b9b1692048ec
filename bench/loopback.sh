# Sourced by the scripts that run peers over TCP on one host. A machine whose congestion control is BBR costs Gloo
# 1.3 to 1.4 times on loopback from 16 MiB on, so as root the peers run in a network namespace with nothing but a
# loopback under CC (reno); the machine's own settings stay as they are. Without root they take the machine's.
# Sets over_loopback, to be put before a command, and loopback_cc, the congestion control of its sockets.
# leave_loopback takes the namespace away: call it in the script's EXIT trap.
CC=${CC:-reno}
over_loopback=""
loopback_cc=$(sysctl -n net.ipv4.tcp_congestion_control)
loopback=lkl$$
trap 'exit 130' INT
trap 'exit 143' TERM HUP

leave_loopback() { [ -z "$over_loopback" ] || ip netns del "$loopback"; }

if [ "$(id -u)" -eq 0 ] && ip netns add "$loopback"; then
  over_loopback="ip netns exec $loopback"
  # Allowed only where the whole machine allows it: reno is, everywhere.
  if ip -n "$loopback" link set lo up && $over_loopback sysctl -qw "net.ipv4.tcp_congestion_control=$CC"; then
    loopback_cc=$CC
  else
    leave_loopback
    over_loopback=""
  fi
fi
[ "$loopback_cc" = "$CC" ] ||
  echo "$(basename "$0"): no namespace with $CC for the peers over loopback: they run under $loopback_cc" >&2
