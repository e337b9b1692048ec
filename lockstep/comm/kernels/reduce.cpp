#include "lockstep/comm/kernels/reduce.h"

#include "lockstep/comm/kernels/reduce_sets.h"

namespace lockstep {
namespace {

using Kernel = void (*)(const ReduceCall&);

Kernel kernel_of(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return reduce_avx512;
  if (set == InstructionSet::kAvx2) return reduce_avx2;
#endif
  (void)set;
  return reduce_plain;
}

Kernel best_kernel() {
  static const Kernel kernel = kernel_of(best_instruction_set());
  return kernel;
}

ReduceCall make_call(std::span<const void* const> ins, std::span<void* const> outs, int64_t count,
                     DType dtype, ReduceOp op, int divisor) {
  return {ins.data(),
          outs.data(),
          static_cast<int>(ins.size()),
          static_cast<int>(outs.size()),
          count,
          dtype,
          op,
          op == ReduceOp::kAvg ? divisor : 1};
}

}  // namespace

std::string_view to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPlain:
      return "plain";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "unknown";
}

InstructionSet best_instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return InstructionSet::kAvx512;
  }
  if (__builtin_cpu_supports("avx2")) return InstructionSet::kAvx2;
#endif
  return InstructionSet::kPlain;
}

void reduce(std::span<const void* const> ins, std::span<void* const> outs, int64_t count,
            DType dtype, ReduceOp op, int divisor) {
  best_kernel()(make_call(ins, outs, count, dtype, op, divisor));
}

void reduce_with(InstructionSet set, std::span<const void* const> ins, std::span<void* const> outs,
                 int64_t count, DType dtype, ReduceOp op, int divisor) {
  kernel_of(set)(make_call(ins, outs, count, dtype, op, divisor));
}

void divide(void* data, int64_t count, DType dtype, int divisor) {
  const void* const in = data;
  reduce(std::span(&in, 1), std::span(&data, 1), count, dtype, ReduceOp::kAvg, divisor);
}

}  // namespace lockstep
