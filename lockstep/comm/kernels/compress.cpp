#include "lockstep/comm/kernels/compress.h"

namespace lockstep::inline internal {
namespace {

const CompressKernels& best_compress_kernels() {
  static const CompressKernels& kernels = compress_kernels(best_instruction_set());
  return kernels;
}

}  // namespace

const CompressKernels& compress_kernels(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return compress_avx512();
  if (set == InstructionSet::kAvx2) return compress_avx2();
#endif
  (void)set;
  return compress_plain();
}

void narrow(const float* in, int64_t count, int divisor, DType to, void* out) {
  best_compress_kernels().narrow(in, count, divisor, to, out);
}

void widen(const void* in, int64_t count, DType from, float* out) {
  best_compress_kernels().widen(in, count, from, out);
}

void encode_scaled(const float* values, int64_t count, int divisor, int64_t blocks, float* rest,
                   char* out) {
  best_compress_kernels().encode_scaled(values, count, divisor, blocks, rest, out);
}

void sum_scaled(std::span<const char* const> ins, int64_t blocks, float* rest, char* out) {
  best_compress_kernels().sum_scaled(ins.data(), static_cast<int>(ins.size()), blocks, rest, out);
}

void decode_scaled(const char* in, int64_t count, float* values) {
  best_compress_kernels().decode_scaled(in, count, values);
}

}  // namespace lockstep::inline internal
