#pragma once
// The same kernels compiled for several instruction sets. Raw pointers and no standard library. The
// linker could otherwise keep an inline function that was compiled here for AVX-512 as the copy for
// all callers.

#include <stdint.h>

#include "lockstep/types.h"

namespace lockstep::inline internal {

// `dtype` is never bool or complex, and is uint8 if `op` is bitwise: see reduce.cpp.
struct ReduceCall {
  const void* const* ins;
  void* const* outs;
  int num_ins;
  int num_outs;
  int64_t count;
  DType dtype;
  ReduceOp op;
  int divisor;  // 1: do not divide
};

struct ScaleCall {
  const void* in;
  void* out;
  int64_t count;
  DType dtype;
  double factor;
};

void reduce_plain(const ReduceCall& call);
void reduce_avx2(const ReduceCall& call);
void reduce_avx512(const ReduceCall& call);
void scale_plain(const ScaleCall& call);
void scale_avx2(const ScaleCall& call);
void scale_avx512(const ScaleCall& call);

}  // namespace lockstep::inline internal
