#pragma once
// The kernels of compress.h compiled for several instruction sets. Raw pointers and no standard
// library, for the reason given in reduce_sets.h.

#include <stdint.h>

#include "lockstep/types.h"

namespace lockstep::inline internal {

struct CompressKernels {
  void (*narrow)(const float* in, int64_t count, int divisor, DType to, void* out);
  void (*widen)(const void* in, int64_t count, DType from, float* out);
  void (*encode_scaled)(const float* values, int64_t count, int divisor, int64_t blocks,
                        float* rest, char* out);
  void (*sum_scaled)(const char* const* ins, int num_ins, int64_t blocks, float* rest, char* out);
  void (*decode_scaled)(const char* in, int64_t count, float* values);
};

const CompressKernels& compress_plain();
const CompressKernels& compress_avx2();
const CompressKernels& compress_avx512();

}  // namespace lockstep::inline internal
