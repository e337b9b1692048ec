#pragma once
// Compresses gradients at memory speed: float32 to and from 16-bit floats, and to and from 8-bit
// integers with a scale per block.
//
// Bits: the same from every instruction set, except the payload of NaN. No alignment is needed; 64
// bytes is fastest. Input and output must not overlap.

#include <cstdint>
#include <span>

#include "lockstep/comm/kernels/compress_sets.h"
#include "lockstep/comm/kernels/reduce.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

/// out[i] = in[i] / divisor, rounded to nearest even. `to`: float16 or bfloat16.
void narrow(const float* in, int64_t count, int divisor, DType to, void* out);
/// out[i] = in[i]. `from`: float16 or bfloat16.
void widen(const void* in, int64_t count, DType from, float* out);

inline constexpr int64_t kScaledBlock = 256;  ///< Numbers that share a scale.

/// Bytes of this many blocks: per block its scale (float32), then its numbers.
constexpr int64_t scaled_bytes(int64_t blocks) {
  return blocks * (static_cast<int64_t>(sizeof(float)) + kScaledBlock);
}

/// Encodes values / divisor + rest as `blocks` blocks, and leaves the rounding error in `rest`.
///
/// values: `count` of them, at most blocks * 256; missing ones count as 0. rest: blocks *
/// 256. out: scaled_bytes(blocks). A block's scale is its largest absolute value divided by 127.
/// Each number is rounded to the nearest multiple of the scale, ties to even; so |rest| <= largest
/// / 254. A block with a value that is not finite decodes to NaN throughout and has no rest. Cost:
/// values are read once, rest is read and written once.
void encode_scaled(const float* values, int64_t count, int divisor, int64_t blocks, float* rest,
                   char* out);

/// The same for rest + ins[0] + ins[1] + ..., in this order; ins are encoded, with as many blocks.
void sum_scaled(std::span<const char* const> ins, int64_t blocks, float* rest, char* out);

/// values[i] = the decoded number i, for i < count.
void decode_scaled(const char* in, int64_t count, float* values);

/// The functions above for a given instruction set, which the machine must support. For tests and
/// benchmarks.
const CompressKernels& compress_kernels(InstructionSet set);

}  // namespace lockstep::inline internal
