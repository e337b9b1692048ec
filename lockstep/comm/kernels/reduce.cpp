#include "lockstep/comm/kernels/reduce.h"

#include "lockstep/base/processor.h"
#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/comm/kernels/reduce_sets.h"

namespace lockstep::inline internal {
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

using ScaleKernel = void (*)(const ScaleCall&);

ScaleKernel scale_kernel_of(InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return scale_avx512;
  if (set == InstructionSet::kAvx2) return scale_avx2;
#endif
  (void)set;
  return scale_plain;
}

bool is_bitwise(ReduceOp op) {
  return op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
}

ReduceCall make_call(std::span<const void* const> ins, std::span<void* const> outs, int64_t count,
                     DType dtype, ReduceOp op, int divisor) {
  const Parts parts = is_bitwise(op) ? Parts{DType::kUint8, size_of(dtype)} : parts_of(dtype);
  return {ins.data(),
          outs.data(),
          static_cast<int>(ins.size()),
          static_cast<int>(outs.size()),
          count * parts.each,
          parts.dtype,
          op_on_parts(dtype, op),
          op == ReduceOp::kAvg ? divisor : 1};
}

ScaleCall make_scale_call(const void* in, void* out, int64_t count, DType dtype, double factor) {
  const Parts parts = parts_of(dtype);
  return {in, out, count * parts.each, parts.dtype, factor};
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
  const Processor processor = this_processor();
  if (processor.avx512) return InstructionSet::kAvx512;
  if (processor.avx2) return InstructionSet::kAvx2;
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

void scale(const void* in, void* out, int64_t count, DType dtype, double factor) {
  static const ScaleKernel kernel = scale_kernel_of(best_instruction_set());
  kernel(make_scale_call(in, out, count, dtype, factor));
}

void scale_with(InstructionSet set, const void* in, void* out, int64_t count, DType dtype,
                double factor) {
  scale_kernel_of(set)(make_scale_call(in, out, count, dtype, factor));
}

void divide(void* data, int64_t count, DType dtype, int divisor) {
  const void* const in = data;
  reduce(std::span(&in, 1), std::span(&data, 1), count, dtype, ReduceOp::kAvg, divisor);
}

}  // namespace lockstep::inline internal
