# Sourced by the scripts that measure peers, with their own arguments: $1 is the build folder. Sets
# root, build, peers (the sources of the peers' programs) and bin (their build folder). Of the
# PyTorch to compare with: python, torchrun and torch_flags for g++. It is the one of TORCH=VERSION,
# else Debian's, whose own torchrun fails on Python 3.11.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/scripts/lib.sh"
build=$(cd "${1:-$root/$release}" && pwd)
peers=$root/bench/peers
torch_place=$root/build/torch/${TORCH:-none}
if [ -x "$torch_place/bin/python" ]; then
  python=${PYTHON:-$torch_place/bin/python}
  torchrun=${TORCHRUN:-$python -m torch.distributed.run}
  torch_place=$(echo "$torch_place"/lib/python3*/site-packages/torch)
  torch_flags="-isystem $torch_place/include -isystem $torch_place/include/torch/csrc/api/include -L$torch_place/lib -Wl,-rpath,$torch_place/lib"
else
  python=${PYTHON:-/usr/bin/python3}
  torchrun=${TORCHRUN:-$python $root/tests/launch/torchrun.py}
  torch_flags=
fi
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
