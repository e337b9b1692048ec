#!/bin/bash
# all_reduce (float32 sum) between hosts of Lockstep, Gloo and Open MPI over TCP, in turns, and the
# speed-up of Lockstep, by medians. Hosts are network namespaces on one bridge, with one rank each
# and shaped links in both directions. Needs root; it removes all that it creates, however it ends.
#
#   bench/net/compare_peers.sh [BUILD_DIR]        (default build/release)
#
# The peers' programs are those of bench/peers, built into BUILD_DIR/peers. Needs libopenmpi-dev and libgloo-dev.
# HOSTS   numbers of hosts ("2 4");  RATES  of a host's link ("1gbit 10gbit none")
# SIZES   bytes;  ROUNDS of all programs (3)
# IMPLS   programs; raw_tcp: plain TCP between two hosts, 4 bytes there and back, or the bytes of an all_reduce
# PIN     if set, every rank stays on a core by its number, so placement is not random
# CC      see hosts.sh: congestion control of the peers; Lockstep sets its own
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
HOSTS=${HOSTS:-2 4}
RATES=${RATES:-1gbit 10gbit none}
SIZES=${SIZES:-4 65536 1048576 16777216 67108864}
ROUNDS=${ROUNDS:-3}
IMPLS=${IMPLS:-lockstep gloo_ring gloo_hd ompi_tuned raw_tcp}
build_allreduce_peers
source "$(dirname "$0")/hosts.sh"

# Each prints lines "NAME,ranks,bytes,min_us,median_us".
lockstep() {
  on_every_host "$1" "$build/bin/lockstep" bench collectives --sizes "${SIZES// /,}" --seconds 0.2 --rounds 3 \
    --json "$results/lockstep.json" >/dev/null
  lockstep_rows "$1" <"$results/lockstep.json"
}
gloo() {
  STORE=$(mktemp -d -p "$results")
  export STORE
  SIZES=$SIZES ROUNDS=3 on_every_host "$2" "$bin/gloo" "gloo_$1" "$1"
}
ompi() {  # yield: else small messages wait for the 4 ms tick; flags 1: both directions at once
  local i list=""
  printf '#!/bin/sh\nh=%s${1##*.}; shift\nexec ip netns exec $h unshare --uts sh -c "hostname $h; $*"\n' "$host" \
    >"$results/agent"
  chmod +x "$results/agent"
  for ((i = 1; i <= $1; i++)); do list=$list,10.79.0.$i:1; done
  SIZES=$SIZES ROUNDS=3 timeout 180 ip netns exec "${host}1" mpirun.openmpi --mca plm_rsh_agent "$results/agent" \
    --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 \
    --mca btl_tcp_flags 1 --mca btl_base_warn_component_unused 0 -x SIZES -x ROUNDS -x PIN -x BASH_FUNC_on_core%% \
    -H "${list#,}" -n "$1" \
    bash -c 'on_core "$OMPI_COMM_WORLD_RANK" "$0" ompi_tuned' "$bin/ompi"
}
raw_tcp() {  # hosts
  local size server
  [ "$1" -eq 2 ] || return 0
  for size in $SIZES; do
    ip netns exec "${host}1" "$build/bin/bench_raw_tcp" 29500 "$size" &
    server=$!
    ip netns exec "${host}2" "$build/bin/bench_raw_tcp" 10.79.0.1 29500 "$size" | sed "s/^/raw_tcp,$1,$size,/; s/ /,/"
    wait $server
  done
}

for rate in $RATES; do
  for hosts in $HOSTS; do
    make_hosts "$hosts" "$rate"
    for ((round = 1; round <= ROUNDS; round++)); do
      for impl in $IMPLS; do
        case $impl in
          lockstep) lockstep "$hosts" ;;
          gloo_*) gloo "${impl#gloo_}" "$hosts" ;;
          ompi_tuned) ompi "$hosts" ;;
          raw_tcp) raw_tcp "$hosts" ;;
        esac
      done
    done | sed -u "s/^/$rate,/" | tee -a "$results/all.csv" >&2
    remove_hosts
  done
done

# Share of the link without headers (1448 of 1514 bytes of a packet), for the least traffic of an
# all_reduce. That is 2 (H - 1) / H of the buffer out and in on every host.
sort -t, -k1,1 -k3,3n -k4,4n -k2,2 -k6,6g "$results/all.csv" | awk -F, '
  { key = $1 "," $3 "," $4 "," $2; at = $1 "," $3 "," $4; n[key]++; t[key, n[key]] = $6
    if (!(key in seen)) { seen[key]; keys[++count] = key; place[key] = at } }
  function median(key) { return t[key, int((n[key] + 1) / 2)] }
  END {
    printf "%-7s %5s %10s %-14s %12s %11s %7s\n", "link", "hosts", "bytes", "program", "median us", "lockstep x", "% link"
    for (i = 1; i <= count; i++) {
      split(keys[i], f, ",")
      share = "-"
      if (f[1] != "none")
        share = sprintf("%.1f", 16 * (f[2] - 1) / f[2] * f[3] / (median(keys[i]) * f[1] * 1000) / (1448 / 1514) * 100)
      own = place[keys[i]] ",lockstep"
      ratio = n[own] ? sprintf("%.2f", median(keys[i]) / median(own)) : "-"
      printf "%-7s %5d %10d %-14s %12.1f %11s %7s\n", f[1], f[2], f[3], f[4], median(keys[i]), ratio, share
    }
  }'
