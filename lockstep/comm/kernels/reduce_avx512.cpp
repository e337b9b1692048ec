#define LOCKSTEP_VECTOR_BYTES 64
#include "lockstep/comm/kernels/reduce_kernels.h"

namespace lockstep::inline internal {

void reduce_avx512(const ReduceCall& call) {
  by_dtype(call);
}

void scale_avx512(const ScaleCall& call) {
  scale_by_dtype(call);
}

}  // namespace lockstep::inline internal
