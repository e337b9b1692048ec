#define LOCKSTEP_VECTOR_BYTES 64
#include "lockstep/comm/kernels/compress_kernels.h"

namespace lockstep {

const CompressKernels& compress_avx512() {
  return kCompressKernels;
}

}  // namespace lockstep
