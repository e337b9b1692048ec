#pragma once
// A plain C interface to an MPI library, so that programs need not link one.
//
// shim.cpp, the only file that includes mpi.h, is a shared object of its own (lockstep_mpi.so). It
// is loaded when a group requests the back end "mpi". It throws nothing and keeps no state but
// MPI's own. Calls come from several threads: init() requests MPI_THREAD_MULTIPLE.

#include <stdint.h>

extern "C" {

#define LOCKSTEP_MPI_SHIM_VERSION 2

enum LockstepMpiKind {
  kMpiAllReduce,
  kMpiReduce,
  kMpiBroadcast,
  kMpiAllGather,
  kMpiReduceScatter,
  kMpiGather,
  kMpiScatter,
  kMpiAllToAll,
  kMpiAllGatherv,
  kMpiAllToAllv,
  kMpiSend,
  kMpiRecv,
};

/// One operation. `dtype` and `op` are the numbers of lockstep::DType (neither bool nor complex)
/// and lockstep::ReduceOp (sum, min, max, product, band, bor or bxor). `in` null means that the
/// rank's part is already at its place in `out`.
struct LockstepMpiCall {
  int kind;
  const void* in;
  void* out;
  int count;  ///< Elements of each part.
  int dtype;
  int op;
  int peer;  ///< Root, destination or source.
  int tag;
  const int* in_counts;  ///< For the uneven kinds: elements by rank.
  const int* in_offsets;
  const int* out_counts;
  const int* out_offsets;
};

/// inout[i] = in[i] op inout[i]: for operations that MPI lacks or defines differently.
typedef void (*LockstepMpiCombine)(const void* in, void* inout, int64_t count, int dtype, int op);

/// Functions that return int return 0, or an MPI error code for text().
struct LockstepMpiApi {
  int version;
  /// "Open MPI v4.1.4".
  const char* (*library)();
  /// Initializes MPI unless it is initialized; once per process. 1: it cannot serve several
  /// threads.
  int (*init)(LockstepMpiCombine combine);
  int (*world_rank)();
  /// A communicator of MPI_COMM_WORLD's `ranks`, in this order. Collective over them.
  int (*create)(const int* ranks, int size, int tag, void** communicator);
  int (*start)(void* communicator, const struct LockstepMpiCall* call, void** request);
  /// Advances all communication of the process. After completion or an error, the request is gone.
  int (*test)(void* request, int* done);
  /// An operation is in progress that may never end. At its end the process waits for the others at
  /// most this long, and then skips MPI_Finalize.
  void (*abandon)(int64_t milliseconds);
  void (*text)(int error, char* to, int bytes);
  /// 1: the ranks' counts did not fit each other.
  int (*is_truncation)(int error);
};

/// The function that lockstep_mpi.so exports.
const struct LockstepMpiApi* lockstep_mpi_api(void);
}
