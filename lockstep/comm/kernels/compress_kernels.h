// The kernels of compress.h, for the instruction set that the including file is compiled for. It
// defines LOCKSTEP_VECTOR_BYTES. Everything is in an unnamed namespace: see reduce_sets.h.

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <stddef.h>

#include "lockstep/comm/kernels/compress_sets.h"

namespace lockstep {

#include "lockstep/comm/kernels/reduce_elements.h"

// Part of one source file per instruction set.
// NOLINTBEGIN(misc-definitions-in-headers)
namespace {

using Ints = VectorOf<int32_t>::type;
using Bytes = VectorOf<int8_t, kVectorBytes / 4>::type;
constexpr int64_t kBlock = 256;
constexpr int64_t kVectors = kBlock / kFloatLanes;
constexpr int64_t kBlockBytes = sizeof(float) + kBlock;

inline Floats floats_at(const float* from) {
  return load_lanes<Floats>(from, kVectorBytes);
}

// Calls step(at, lanes) for all of `count`.
template <class Step>
inline void by_lanes(int64_t count, const Step& step) {
  int64_t at = 0;
  for (; at + kFloatLanes <= count; at += kFloatLanes) step(at, kFloatLanes);
  if (at < count) step(at, count - at);
}

template <class Format>
void narrow_floats(const float* in, int64_t count, int divisor, char* out) {
  by_lanes(count, [=](int64_t at, int64_t lanes) {
    Floats values = load_lanes<Floats>(in + at, lanes * 4);
    if (divisor != 1) values = divide_floats<Floats, float>(values, divisor);
    store_lanes(out + 2 * at, Format::narrow(values), lanes * 2);
  });
}

template <class Format>
void widen_halves(const char* in, int64_t count, float* out) {
  by_lanes(count, [=](int64_t at, int64_t lanes) {
    store_lanes(out + at, Format::widen(load_lanes<Halves>(in + 2 * at, lanes * 2)), lanes * 4);
  });
}

void narrow_to(const float* in, int64_t count, int divisor, DType to, void* out) {
  char* const bytes = static_cast<char*>(out);
  if (to == DType::kFloat16) return narrow_floats<Float16>(in, count, divisor, bytes);
  narrow_floats<BFloat16>(in, count, divisor, bytes);
}

void widen_from(const void* in, int64_t count, DType from, float* out) {
  const char* const bytes = static_cast<const char*>(in);
  if (from == DType::kFloat16) return widen_halves<Float16>(bytes, count, out);
  widen_halves<BFloat16>(bytes, count, out);
}

struct Block {
  Floats values[kVectors];
};

constexpr float kLargestFloat = 0x1.fffffep127f;
// 127 times the scale must be finite too: one place below kLargestFloat / 127.
constexpr float kLargestScale = 0x1.020406p121f;

// The largest of a block, by amount, as bits: those of numbers without sign are in the order of the
// numbers, and what is not finite is above.
inline int32_t largest_bits(const Block& block) {
  Ints largest{};
  for (const Floats& values : block.values) {
    const Ints amounts = (Ints)values & 0x7fffffff;
    largest = amounts > largest ? amounts : largest;
  }
  int32_t bits = 0;
  for (int i = 0; i < kFloatLanes; ++i) bits = largest[i] > bits ? largest[i] : bits;
  return bits;
}

// A scale that says what the numbers, all zero, stand for: nothing, or (NaN) no numbers.
inline void encode_zeros(const Block& block, float scale, float* rest, char* out) {
  __builtin_memcpy(out, &scale, sizeof scale);
  __builtin_memset(out + sizeof scale, 0, kBlock);
  const bool numbers = scale == scale;
  for (int64_t k = 0; k < kVectors; ++k) {
    store_lanes(rest + k * kFloatLanes, numbers ? block.values[k] : Floats{}, kVectorBytes);
  }
}

// Adding this leaves no place for a fraction, so the FPU rounds, and the last byte of the sum is
// the whole number in two's complement.
constexpr float kToWhole = 0x1.8p23f;

inline void encode_block(const Block& block, float* rest, char* out) {
  const int32_t bits = largest_bits(block);
  if (bits >= 0x7f800000) return encode_zeros(block, __builtin_nanf(""), rest, out);
  float largest = 0;
  __builtin_memcpy(&largest, &bits, sizeof largest);
  const float exact = largest / 127;
  const float scale = exact < kLargestScale ? exact : kLargestScale;
  const float inverse = 1 / scale;
  // Of tiny values the inverse is infinite; they are all rest.
  if (!(inverse <= kLargestFloat)) return encode_zeros(block, 0, rest, out);
  __builtin_memcpy(out, &scale, sizeof scale);
  for (int64_t k = 0; k < kVectors; ++k) {
    const Floats shifted = block.values[k] * inverse + kToWhole;
    const Floats whole = shifted - kToWhole;
    store_lanes(out + sizeof scale + k * kFloatLanes, __builtin_convertvector((Ints)shifted, Bytes),
                kFloatLanes);
    store_lanes(rest + k * kFloatLanes, block.values[k] - whole * scale, kVectorBytes);
  }
}

// Part k of a block's numbers, decoded; `scale` is its own.
inline Floats decoded(const char* block, int64_t k, float scale) {
  const Bytes numbers = load_lanes<Bytes>(block + sizeof scale + k * kFloatLanes, kFloatLanes);
  return __builtin_convertvector(__builtin_convertvector(numbers, Ints), Floats) * scale;
}

inline float scale_of(const char* block) {
  float scale = 0;
  __builtin_memcpy(&scale, block, sizeof scale);
  return scale;
}

inline void encode_floats(const float* values, int divisor, float* rest, char* out) {
  Block block;
  for (int64_t k = 0; k < kVectors; ++k) {
    const int64_t at = k * kFloatLanes;
    const Floats part = divide_floats<Floats, float>(floats_at(values + at), divisor);
    block.values[k] = part + floats_at(rest + at);
  }
  encode_block(block, rest, out);
}

void encode_blocks(const float* values, int64_t count, int divisor, int64_t blocks, float* rest,
                   char* out) {
  const int64_t whole = count / kBlock < blocks ? count / kBlock : blocks;
  for (int64_t b = 0; b < whole; ++b) {
    encode_floats(values + b * kBlock, divisor, rest + b * kBlock, out + b * kBlockBytes);
  }
  for (int64_t b = whole; b < blocks; ++b) {
    float padded[kBlock] = {};
    const int64_t left = count - b * kBlock;
    for (int64_t i = 0; i < left; ++i) padded[i] = values[b * kBlock + i];
    encode_floats(padded, divisor, rest + b * kBlock, out + b * kBlockBytes);
  }
}

void sum_blocks(const char* const* ins, int num_ins, int64_t blocks, float* rest, char* out) {
  for (int64_t b = 0; b < blocks; ++b) {
    Block sum;
    for (int64_t k = 0; k < kVectors; ++k) {
      Floats part = floats_at(rest + b * kBlock + k * kFloatLanes);
      for (int in = 0; in < num_ins; ++in) {
        const char* const encoded = ins[in] + b * kBlockBytes;
        part += decoded(encoded, k, scale_of(encoded));
      }
      sum.values[k] = part;
    }
    encode_block(sum, rest + b * kBlock, out + b * kBlockBytes);
  }
}

void decode_blocks(const char* in, int64_t count, float* values) {
  for (int64_t b = 0; b * kBlock < count; ++b) {
    const char* const encoded = in + b * kBlockBytes;
    const float scale = scale_of(encoded);
    float* const to = values + b * kBlock;
    const int64_t here = count - b * kBlock < kBlock ? count - b * kBlock : kBlock;
    by_lanes(here, [=](int64_t at, int64_t lanes) {
      store_lanes(to + at, decoded(encoded, at / kFloatLanes, scale), lanes * 4);
    });
  }
}

constexpr CompressKernels kCompressKernels = {narrow_to, widen_from, encode_blocks, sum_blocks,
                                              decode_blocks};

}  // namespace
// NOLINTEND(misc-definitions-in-headers)
}  // namespace lockstep
