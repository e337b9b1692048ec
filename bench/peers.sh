# Sourced by the scripts that measure beside peers, with their own arguments: $1 is the build folder.
# Sets root, build, PEERS (the folder with the peers' programs) and bin (where they are built).
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "${1:-$root/build/release}" && pwd)
PEERS=${PEERS:-$root/../shared/peers}
[ -d "$PEERS" ] || { echo "compare_peers: no folder $PEERS; set PEERS" >&2; exit 2; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bin=$build/peers
mkdir -p "$bin"

# all_reduce of Open MPI and of Gloo, as $bin/ompi and $bin/gloo. Needs libopenmpi-dev and libgloo-dev.
build_allreduce_peers() {
  local flags="-std=c++17 -O3 -march=native -w -pthread"
  [ -x "$bin/ompi" ] || mpicxx.openmpi $flags "$PEERS/allreduce_mpi.cpp" -o "$bin/ompi"
  [ -x "$bin/gloo" ] || g++ $flags "$PEERS/allreduce_gloo.cpp" -o "$bin/gloo" -lgloo
}
