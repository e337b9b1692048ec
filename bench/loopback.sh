# Sourced by the scripts that run peers over TCP on one host. If the machine's congestion control is
# BBR, Gloo takes 1.3 to 1.4 times as long on loopback from 16 MiB on. So as root the peers run in a
# network namespace with only a loopback under CC (reno); the machine's own settings stay unchanged.
# Without root they use the machine's.
# Sets over_loopback, a prefix for commands, and loopback_cc, the congestion control of its sockets.
# leave_loopback removes the namespace: call it in the script's EXIT trap.
CC=${CC:-reno}
over_loopback=""
loopback_cc=$(sysctl -n net.ipv4.tcp_congestion_control)
loopback=lkl$$
trap 'exit 130' INT
trap 'exit 143' TERM HUP

leave_loopback() { [ -z "$over_loopback" ] || ip netns del "$loopback"; }

if [ "$(id -u)" -eq 0 ] && ip netns add "$loopback"; then
  over_loopback="ip netns exec $loopback"
  # A namespace allows only the machine's algorithms; reno is always among them.
  if ip -n "$loopback" link set lo up && $over_loopback sysctl -qw "net.ipv4.tcp_congestion_control=$CC"; then
    loopback_cc=$CC
  else
    leave_loopback
    over_loopback=""
  fi
fi
[ "$loopback_cc" = "$CC" ] ||
  echo "$(basename "$0"): no namespace with $CC for the peers over loopback: they run under $loopback_cc" >&2
