// MPI_Allreduce and MPI_Barrier: mpirun -n 2 allreduce_mpi NAME; SIZES, ROUNDS: see rounds.h.

#include <mpi.h>

#include "rounds.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  peers::Peer peer;
  peer.name = argc > 1 ? argv[1] : "mpi";
  MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &peer.size);
  peer.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  peer.all_reduce = [](std::vector<float>& values) {
    return [&values] {
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
    };
  };
  peer.largest = [](double own) {
    double all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
  };
  peers::time_all_sizes(peer);
  MPI_Finalize();
}
