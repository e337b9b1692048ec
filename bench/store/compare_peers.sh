#!/bin/bash
# Lockstep's TCP store beside torch's TCPStore, in turns: calls of one and of eight clients, and
# many clients that connect and meet at a barrier.
#
#   bench/store/compare_peers.sh [BUILD_DIR]        (default build/release)
#
# The peer's program is bench/peers/store_bench.cpp, built into BUILD_DIR/peers. TORCH=VERSION, as
# for make, takes that libtorch; its server has libuv from 2.4 on.
# ROUNDS  of both programs (2)
set -euo pipefail
source "$(dirname "$0")/../peers.sh"
ROUNDS=${ROUNDS:-2}

torch=$bin/store_torch
mkdir -p "$bin"
[ "$torch" -nt "$peers/store_bench.cpp" ] ||
  g++ -std=c++20 -O2 -w -pthread -D_GLIBCXX_USE_CXX11_ABI=1 $torch_flags "$peers/store_bench.cpp" -o "$torch" -ltorch -ltorch_cpu -lc10
export TORCH_CPP_LOG_LEVEL=ERROR # else it warns of each client whose host has no name
# The server and a thousand clients share the descriptors of one process.
ulimit -n "$(ulimit -H -n)"

for ((round = 1; round <= ROUNDS; round++)); do
  echo "-- Lockstep, round $round"
  "$build/bin/bench_store" 0.5 5
  echo "-- torch's TCPStore, round $round"
  for clients in 1 8; do "$torch" ops "$clients" 0.5 3; done
  for clients in 64 256 1024; do "$torch" barrier "$clients" 5; done
done
