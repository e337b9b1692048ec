#pragma once
// Numbers of 8 bits with a scale for each block of them.

#include <cstdint>
#include <memory>

#include "lockstep/parallel/comm_hook.h"

namespace lockstep {

inline constexpr int64_t kScaledBlock = 256;  ///< Numbers that share a scale.

/// Bytes of so many blocks: their scales (float32), then their numbers.
constexpr int64_t scaled_bytes(int64_t blocks) {
  return blocks * (static_cast<int64_t>(sizeof(float)) + kScaledBlock);
}

/// Rounds `blocks` blocks of `values` to multiples of largest / 127, largest being that of the
/// block by amount. rest: what rounding took away, |rest| <= largest / 254. A block with a value
/// that is not finite decodes to NaN throughout, and leaves no rest.
void encode_scaled(const float* values, int64_t blocks, char* out, float* rest);

/// values = what was encoded, or values += it.
void decode_scaled(const char* in, int64_t blocks, float* values, bool add);

/// The hook "int8" of make_comm_hook(). Every rank sends each other one its part of the bucket,
/// adds up what it gets, and sends the sum to all: 2 (P - 1) / P bytes a number and rank, a quarter
/// of float32's, and a scale for 256. Both roundings leave a rest, which is added to the next
/// step's gradients (error feedback), so nothing is lost but delayed.
/// Gradients that are not float32 or float64 travel as they are.
/// Source: Seide et al., "1-bit stochastic gradient descent", Interspeech 2014 (the feedback).
std::shared_ptr<CommHook> make_int8_hook();

}  // namespace lockstep
