#!/usr/bin/env bash
# The benchmarks behind docs/performance.md, one after the other; each runs its peer in the same
# run. They need an idle machine. The peers' own programs are in bench/peers. Figures between hosts
# need root, for network namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
bin=$release/bin
title() { printf '\n== %s\n' "$1"; }

title "launch: two processes of /bin/true, lockstep run beside fork and exec"
"$bin/bench_launch"
"$bin/bench_launch" --ranks 32 --rounds 50
title "launch beside mpirun and torchrun"
bench/launch/compare_peers.sh
title "rendezvous of 10,000 agents: decisions of the one that leads"
"$bin/bench_rendezvous"
title "32 ranks of the trainer to their first barrier, with and without the fork server"
bench/launch/first_barrier.sh
title "from a killed worker to the next attempt's first step, beside torchrun"
bench/launch/restart.sh
title "death of a rank: until the others know"
"$bin/bench_death"
title "messages within a host, beside a memcpy and a barrier"
"$bin/bench_messages"
title "flight recorder"
"$bin/bench_flight"
title "data: transforms of CIFAR-10"
"$bin/bench_data"
title "data: what networks for text train on, beside Python"
bench/ocr_pipeline/compare_peers.sh
for ranks in 2 4 8; do
  title "all_reduce and barrier in shared memory, $ranks ranks, beside what the memory can do"
  "$bin/lockstep" bench collectives --ranks $ranks --sizes 4,8,64K,1M,16M,64M,256M
  "$bin/lockstep" bench collectives --ranks $ranks --op barrier --sizes 8
done
namespaces=no
if [ "$(id -u)" -eq 0 ] && ip netns add "lockstep$$" 2>/dev/null; then
  ip netns del "lockstep$$"
  namespaces=yes
  title "two ranks a host beside one, at 1 Gbit/s"
  bench/net/hierarchical.sh
  title "communication hooks between hosts at 1 Gbit/s"
  bench/net/hooks.sh
else
  echo "bench: left out, for want of network namespaces (root makes them): all that is between hosts" >&2
fi
title "store beside torch's TCPStore"
bench/store/compare_peers.sh
for ranks in 2 4 8; do  # 0: a barrier
  title "all_reduce beside Open MPI and Gloo, $ranks ranks"
  SIZES="0 8 65536 1048576 16777216 67108864 268435456" RANKS=$ranks ROUNDS=3 bench/collectives/compare_peers.sh
done
if [ $namespaces = yes ]; then
  title "all_reduce between hosts beside Open MPI and Gloo"
  bench/net/compare_peers.sh
fi
title "data parallel beside independent processes and PyTorch DDP"
bench/ddp/compare_peers.sh
