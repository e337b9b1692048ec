#define LOCKSTEP_VECTOR_BYTES 32
#include "lockstep/comm/kernels/compress_kernels.h"

namespace lockstep::inline internal {

const CompressKernels& compress_avx2() {
  return kCompressKernels;
}

}  // namespace lockstep::inline internal
