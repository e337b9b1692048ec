#define LOCKSTEP_VECTOR_BYTES 64
#include "lockstep/comm/kernels/compress_kernels.h"

namespace lockstep::inline internal {

const CompressKernels& compress_avx512() {
  return kCompressKernels;
}

}  // namespace lockstep::inline internal
