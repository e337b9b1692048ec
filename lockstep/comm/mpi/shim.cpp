// See shim.h. C++ for its templates only: no standard library, no exceptions.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include "lockstep/comm/mpi/shim.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/types.h"

namespace {

using lockstep::DType;
using lockstep::ReduceOp;

LockstepMpiCombine combine_function = nullptr;

template <DType kType, ReduceOp kOp>
void combine(void* in, void* inout, int* count, MPI_Datatype*) {
  combine_function(in, inout, *count, static_cast<int>(kType), static_cast<int>(kOp));
}

constexpr int kNumOwn = 4;
MPI_Op own_sum[lockstep::kNumDTypes];
MPI_Op own_min[lockstep::kNumDTypes];
MPI_Op own_max[lockstep::kNumDTypes];
MPI_Op own_product[lockstep::kNumDTypes];

template <DType kType>
int make_ops() {
  constexpr int kIndex = static_cast<int>(kType);
  const int errors[kNumOwn] = {
      MPI_Op_create(combine<kType, ReduceOp::kSum>, 1, &own_sum[kIndex]),
      MPI_Op_create(combine<kType, ReduceOp::kMin>, 1, &own_min[kIndex]),
      MPI_Op_create(combine<kType, ReduceOp::kMax>, 1, &own_max[kIndex]),
      MPI_Op_create(combine<kType, ReduceOp::kProduct>, 1, &own_product[kIndex]),
  };
  for (const int error : errors) {
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

MPI_Datatype type_of(int dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::kInt8:
      return MPI_INT8_T;
    case DType::kInt16:
      return MPI_INT16_T;
    case DType::kInt32:
      return MPI_INT32_T;
    case DType::kInt64:
      return MPI_INT64_T;
    case DType::kFloat16:
    case DType::kBFloat16:
      return MPI_UINT16_T;
    case DType::kFloat32:
      return MPI_FLOAT;
    case DType::kFloat64:
      return MPI_DOUBLE;
    default:
      return MPI_UINT8_T;
  }
}

/// MPI's own reductions serve elements of four and eight bytes, ours serve smaller ones. MPI has no
/// two-byte floats, and Open MPI 4.1 saturates sums of small integers on AVX. Ours also serve
/// minimum and maximum of floats, because MPI leaves the result for NaN open.
MPI_Op op_of(int dtype, int op) {
  const auto type = static_cast<DType>(dtype);
  const bool small = type == DType::kUint8 || type == DType::kInt8 || type == DType::kInt16 ||
                     type == DType::kFloat16 || type == DType::kBFloat16;
  const bool own_ends = small || type == DType::kFloat32 || type == DType::kFloat64;
  switch (static_cast<ReduceOp>(op)) {
    case ReduceOp::kMin:
      return own_ends ? own_min[dtype] : MPI_MIN;
    case ReduceOp::kMax:
      return own_ends ? own_max[dtype] : MPI_MAX;
    case ReduceOp::kProduct:
      return small ? own_product[dtype] : MPI_PROD;
    case ReduceOp::kBand:
      return MPI_BAND;
    case ReduceOp::kBor:
      return MPI_BOR;
    case ReduceOp::kBxor:
      return MPI_BXOR;
    default:
      return small ? own_sum[dtype] : MPI_SUM;
  }
}

const char* library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "MPI";
  for (char* at = text; *at != '\0'; ++at) {
    if (*at == ',' || *at == '\n') *at = '\0';
  }
  return text;
}

int64_t exit_limit_ms = -1;  // none; see abandon()

void abandon(int64_t milliseconds) {
  __atomic_store_n(&exit_limit_ms, milliseconds, __ATOMIC_RELAXED);
}

int64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

/// True once all ranks have reached their end.
bool all_are_here() {
  MPI_Request request;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  const int64_t limit = __atomic_load_n(&exit_limit_ms, __ATOMIC_RELAXED);
  const int64_t last = now_ms() + limit;
  while (true) {
    int done = 0;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    if (limit >= 0 && now_ms() > last) return false;
    const timespec pause{0, 100000};
    nanosleep(&pause, nullptr);
  }
}

/// MPI_Finalize waits for all ranks without limit; so the ranks meet before it.
void finalize() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && all_are_here()) MPI_Finalize();
}

int init(LockstepMpiCombine function) {
  static bool done = false;
  if (done) return MPI_SUCCESS;
  combine_function = function;
  int initialized = 0;
  int level = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  if (initialized == 0) {
    const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    if (error != MPI_SUCCESS) return error;
    atexit(finalize);
  } else {
    MPI_Query_thread(&level);
  }
  if (level < MPI_THREAD_MULTIPLE) return 1;
  if (const int error = make_ops<DType::kUint8>()) return error;
  if (const int error = make_ops<DType::kInt8>()) return error;
  if (const int error = make_ops<DType::kInt16>()) return error;
  if (const int error = make_ops<DType::kFloat16>()) return error;
  if (const int error = make_ops<DType::kBFloat16>()) return error;
  if (const int error = make_ops<DType::kFloat32>()) return error;
  if (const int error = make_ops<DType::kFloat64>()) return error;
  done = true;
  return MPI_SUCCESS;
}

int world_rank() {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int create(const int* ranks, int size, int tag, void** communicator) {
  *communicator = nullptr;
  auto* const made = static_cast<MPI_Comm*>(malloc(sizeof(MPI_Comm)));
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group members = MPI_GROUP_NULL;
  int error = MPI_Comm_group(MPI_COMM_WORLD, &world);
  if (error == MPI_SUCCESS) error = MPI_Group_incl(world, size, ranks, &members);
  if (error == MPI_SUCCESS) error = MPI_Comm_create_group(MPI_COMM_WORLD, members, tag, made);
  if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
  if (members != MPI_GROUP_NULL) MPI_Group_free(&members);
  if (world != MPI_GROUP_NULL) MPI_Group_free(&world);
  if (error != MPI_SUCCESS) {
    free(made);
    return error;
  }
  *communicator = made;
  return MPI_SUCCESS;
}

int start_on(MPI_Comm comm, const LockstepMpiCall& call, MPI_Request* request) {
  const MPI_Datatype type = type_of(call.dtype);
  const void* const in = call.in != nullptr ? call.in : MPI_IN_PLACE;
  const MPI_Op op = op_of(call.dtype, call.op);
  switch (call.kind) {
    case kMpiAllReduce:
      return MPI_Iallreduce(in, call.out, call.count, type, op, comm, request);
    case kMpiReduce:
      return MPI_Ireduce(in, call.out, call.count, type, op, call.peer, comm, request);
    case kMpiBroadcast:
      return MPI_Ibcast(call.out, call.count, type, call.peer, comm, request);
    case kMpiAllGather:
      return MPI_Iallgather(in, call.count, type, call.out, call.count, type, comm, request);
    case kMpiReduceScatter:
      return MPI_Ireduce_scatter_block(in, call.out, call.count, type, op, comm, request);
    case kMpiGather:
      return MPI_Igather(in, call.count, type, call.out, call.count, type, call.peer, comm,
                         request);
    case kMpiScatter:
      return MPI_Iscatter(call.in, call.count, type, call.out != nullptr ? call.out : MPI_IN_PLACE,
                          call.count, type, call.peer, comm, request);
    case kMpiAllToAll:
      return MPI_Ialltoall(call.in, call.count, type, call.out, call.count, type, comm, request);
    case kMpiAllGatherv:
      return MPI_Iallgatherv(in, call.count, type, call.out, call.out_counts, call.out_offsets,
                             type, comm, request);
    case kMpiAllToAllv:
      return MPI_Ialltoallv(call.in, call.in_counts, call.in_offsets, type, call.out,
                            call.out_counts, call.out_offsets, type, comm, request);
    case kMpiSend:
      return MPI_Isend(call.in, call.count, type, call.peer, call.tag, comm, request);
    case kMpiRecv:
      return MPI_Irecv(call.out, call.count, type, call.peer, call.tag, comm, request);
    default:
      return MPI_ERR_OTHER;
  }
}

int start(void* communicator, const LockstepMpiCall* call, void** request) {
  auto* const made = static_cast<MPI_Request*>(malloc(sizeof(MPI_Request)));
  const int error = start_on(*static_cast<MPI_Comm*>(communicator), *call, made);
  if (error != MPI_SUCCESS) free(made);
  *request = error == MPI_SUCCESS ? made : nullptr;
  return error;
}

int test(void* request, int* done) {
  const int error = MPI_Test(static_cast<MPI_Request*>(request), done, MPI_STATUS_IGNORE);
  if (error != MPI_SUCCESS || *done != 0) free(request);
  return error;
}

void text(int error, char* to, int bytes) {
  char buffer[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, buffer, &length);
  strncpy(to, buffer, static_cast<size_t>(bytes) - 1);
  to[bytes - 1] = '\0';
}

int is_truncation(int error) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(error, &kind);
  return kind == MPI_ERR_TRUNCATE ? 1 : 0;
}

constexpr LockstepMpiApi kApi = {
    LOCKSTEP_MPI_SHIM_VERSION,
    library,
    init,
    world_rank,
    create,
    start,
    test,
    abandon,
    text,
    is_truncation,
};

}  // namespace

const LockstepMpiApi* lockstep_mpi_api(void) {
  return &kApi;
}
