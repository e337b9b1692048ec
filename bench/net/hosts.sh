# Sourced by the scripts that measure between hosts: network namespaces on one bridge, links shaped
# in both directions. Needs root; it removes all that it creates, however the script ends.
# CC  congestion control of the hosts (cubic)
[ "$(id -u)" -eq 0 ] || { echo "$(basename "$0"): needs root, to make network namespaces" >&2; exit 2; }
CC=${CC:-cubic}
results=$(mktemp -d)
host=lkb$$h   # namespaces ${host}1, ${host}2 ...
bridge=lkb$$

remove_hosts() {
  local name
  for name in $(ip netns list | awk -v h="^$host[0-9]+$" '$1 ~ h { print $1 }'); do
    ip netns pids "$name" | xargs -r kill -9 2>/dev/null || true
    ip link del "v${name#"$host"}$bridge" 2>/dev/null || true  # else it lives as long as the namespace
    ip netns del "$name"
  done
  ip link del "$bridge" 2>/dev/null || true
}
# A new namespace is limited to the algorithms that the whole machine allows.
allowed=$(sysctl -n net.ipv4.tcp_allowed_congestion_control)
trap 'remove_hosts; sysctl -qw "net.ipv4.tcp_allowed_congestion_control=$allowed"; rm -rf "$results"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

sysctl -qw "net.ipv4.tcp_allowed_congestion_control=$allowed $CC"

make_hosts() {  # hosts rate
  local i burst=256kb
  ip link add "$bridge" type bridge
  ip link set "$bridge" up
  for ((i = 1; i <= $1; i++)); do
    ip netns add "$host$i"
    ip link add "v$i$bridge" type veth peer name eth0 netns "$host$i"
    ip link set "v$i$bridge" master "$bridge" up
    ip -n "$host$i" addr add "10.79.0.$i/24" dev eth0
    ip -n "$host$i" link set eth0 up
    ip -n "$host$i" link set lo up
    ip netns exec "$host$i" sysctl -qw "net.ipv4.tcp_congestion_control=$CC"
    [ "$2" = none ] && continue
    [ "${2%gbit}" -ge 10 ] && burst=2mb
    ip netns exec "$host$i" tc qdisc add dev eth0 root tbf rate "$2" burst $burst limit 16mb
    tc qdisc add dev "v$i$bridge" root tbf rate "$2" burst $burst limit 16mb
  done
}

# With PIN, keeps a process on a core by its rank. Without it, three of four ranks may share one of
# two cores and take half as long again.
on_core() {  # rank command...
  local core=$(($1 % $(nproc)))
  shift
  if [ -n "${PIN:-}" ]; then exec taskset -c "$core" "$@"; else exec "$@"; fi
}
export -f on_core
export PIN=${PIN:-}

on_every_host() {  # hosts command...; RANKS_A_HOST (1)
  local n=$1 i here=${RANKS_A_HOST:-1} pids="" rank status=0
  shift
  export WORLD_SIZE=$((n * here)) MASTER_ADDR=10.79.0.1 MASTER_PORT=29400 LOCAL_WORLD_SIZE=$here IFACE=eth0
  for ((rank = 0; rank < WORLD_SIZE; rank++)); do
    i=$((rank / here))
    RANK=$rank LOCAL_RANK=$((rank % here)) LOCKSTEP_HOST_ID=h$i on_core "$rank" timeout 180 ip netns exec "$host$((i + 1))" "$@" &
    pids="$pids $!"
  done
  for rank in $pids; do wait "$rank" || status=$?; done
  [ $status -eq 0 ] || { echo "$(basename "$0"): $1 ended with status $status" >&2; exit 1; }
}

export LOCKSTEP_SECRET
LOCKSTEP_SECRET=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
