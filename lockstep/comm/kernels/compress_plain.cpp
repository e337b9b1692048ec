#define LOCKSTEP_VECTOR_BYTES 16
#include "lockstep/comm/kernels/compress_kernels.h"

namespace lockstep::inline internal {

const CompressKernels& compress_plain() {
  return kCompressKernels;
}

}  // namespace lockstep::inline internal
