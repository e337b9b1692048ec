#define LOCKSTEP_VECTOR_BYTES 32
#include "lockstep/comm/kernels/reduce_kernels.h"

namespace lockstep::inline internal {

void reduce_avx2(const ReduceCall& call) {
  by_dtype(call);
}

void scale_avx2(const ScaleCall& call) {
  scale_by_dtype(call);
}

}  // namespace lockstep::inline internal
