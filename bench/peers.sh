# Sourced by the scripts that measure peers, with their own arguments: $1 is the build folder. Sets
# root, build, peers (the sources of the peers' programs) and bin (their build folder).
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(cd "${1:-$root/build/release${LOCKSTEP_BUILD_SUFFIX:-}}" && pwd)
peers=$root/bench/peers
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bin=$build/peers

# all_reduce of Open MPI and of Gloo, as $bin/ompi and $bin/gloo. Needs libopenmpi-dev and libgloo-dev.
build_allreduce_peers() {
  local flags="-std=c++17 -O3 -march=native -w -pthread" mpi=$peers/allreduce_mpi.cpp gloo=$peers/allreduce_gloo.cpp
  mkdir -p "$bin"
  { [ "$bin/ompi" -nt "$mpi" ] && [ "$bin/ompi" -nt "$peers/rounds.h" ]; } || mpicxx.openmpi $flags "$mpi" -o "$bin/ompi"
  { [ "$bin/gloo" -nt "$gloo" ] && [ "$bin/gloo" -nt "$peers/rounds.h" ]; } || g++ $flags "$gloo" -o "$bin/gloo" -lgloo
}

# Converts the JSON of `lockstep bench collectives`, from standard input, to the peers' form:
# "lockstep,ranks,bytes,min_us,median_us".
lockstep_rows() { # ranks
  tr -d ' \n' | sed 's/},/}\n/g; s/}\]/}\n/' |
    sed -E 's/.*"bytes":([0-9]+),.*"min_us":([0-9.e+-]+),.*"p50_us":([0-9.e+-]+),.*/lockstep,'"$1"',\1,\2,\3/'
}
