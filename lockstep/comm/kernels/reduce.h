#pragma once
// Element-wise reduction of several buffers in one pass, in the fixed order, at memory speed.

#include <cstdint>
#include <span>
#include <string_view>

#include "lockstep/types.h"

namespace lockstep::inline internal {

/// outs[j][i] = the tree (reduce_tree.h) over ins[0][i] ... ins[n-1][i], for all i < count and all
/// j.
///
/// An output may be an input at the same address; no other overlap is allowed. No alignment is
/// needed; 64 bytes is fastest. The op kAvg sums, then divides by `divisor` (the number of ranks,
/// which may exceed `ins`); others ignore it. `op` must be allowed by can_reduce(); kPremulSum sums
/// values that scale() has multiplied.
///
/// Cost: every input is read once, every output written once. Bits: the same from every instruction
/// set. Integers wrap. Values of float16 and bfloat16 are computed in float32 and rounded to
/// nearest even after every operation. The ops kMin and kMax give NaN if an input is NaN, as
/// torch.minimum and IEEE 754-2019 do. Of +0 and -0 they give the value of the later rank. Only the
/// payload of NaN is unspecified.
void reduce(std::span<const void* const> ins, std::span<void* const> outs, int64_t count,
            DType dtype, ReduceOp op, int divisor);

/// data[i] /= divisor, as kAvg does at its end.
void divide(void* data, int64_t count, DType dtype, int divisor);

enum class InstructionSet : uint8_t { kPlain, kAvx2, kAvx512 };
/// "avx512".
std::string_view to_string(InstructionSet set);
/// The best instruction set of this machine.
InstructionSet best_instruction_set();
/// The same as reduce(), with a given instruction set, which the machine must support. For tests
/// and benchmarks.
void reduce_with(InstructionSet set, std::span<const void* const> ins, std::span<void* const> outs,
                 int64_t count, DType dtype, ReduceOp op, int divisor);

/// out[i] = in[i] * factor, for the types that kPremulSum allows; `out` may be `in`. float16 and
/// bfloat16 are multiplied in float32 and rounded to nearest even. The same bits from every
/// instruction set.
void scale(const void* in, void* out, int64_t count, DType dtype, double factor);
void scale_with(InstructionSet set, const void* in, void* out, int64_t count, DType dtype,
                double factor);

}  // namespace lockstep::inline internal
