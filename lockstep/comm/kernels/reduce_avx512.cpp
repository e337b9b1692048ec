#define LOCKSTEP_VECTOR_BYTES 64
#include "lockstep/comm/kernels/reduce_kernels.h"

namespace lockstep {

void reduce_avx512(const ReduceCall& call) {
  by_dtype(call);
}

}  // namespace lockstep
