#define LOCKSTEP_VECTOR_BYTES 16
#include "lockstep/comm/kernels/reduce_kernels.h"

namespace lockstep::inline internal {

void reduce_plain(const ReduceCall& call) {
  by_dtype(call);
}

void scale_plain(const ScaleCall& call) {
  scale_by_dtype(call);
}

}  // namespace lockstep::inline internal
