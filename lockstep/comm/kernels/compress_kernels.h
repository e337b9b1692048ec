// The kernels of compress.h, for the instruction set that the including file is compiled for. It
// defines LOCKSTEP_VECTOR_BYTES. Everything is in an unnamed namespace: see reduce_sets.h.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "lockstep/comm/kernels/compress_sets.h"

namespace lockstep::inline internal {

#include "lockstep/comm/kernels/reduce_elements.h"

// Part of one source file per instruction set.
// NOLINTBEGIN(misc-definitions-in-headers)
namespace {

constexpr int kBlock = 256;
constexpr int64_t kBlockBytes = sizeof(float) + kBlock;

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

constexpr float kLargestFloat = 0x1.fffffep127f;
// 127 times the scale must be finite too: the last float below kLargestFloat / 127.
constexpr float kLargestScale = 0x1.020406p121f;

// The functions below process a block in plain loops of fixed length, which compilers vectorize for
// any set. Between numbers of 8 and 32 bits that is faster than vector types.

// The largest absolute value of a block, as bits. Bits of non-negative floats have the order of the
// floats, and values that are not finite are above.
inline int32_t largest_bits(const float* block) {
  int32_t largest = 0;
  for (int i = 0; i < kBlock; ++i) {
    const int32_t amount = __builtin_bit_cast(int32_t, block[i]) & 0x7fffffff;
    largest = amount > largest ? amount : largest;
  }
  return largest;
}

// Encodes numbers that are all zero with `scale`: 0, or NaN for values that are not finite.
inline void encode_zeros(const float* block, float scale, float* rest, char* out) {
  __builtin_memcpy(out, &scale, sizeof scale);
  __builtin_memset(out + sizeof scale, 0, kBlock);
  if (scale == scale) {
    __builtin_memcpy(rest, block, kBlock * sizeof(float));
  } else {
    __builtin_memset(rest, 0, kBlock * sizeof(float));
  }
}

// Adding this leaves no place for a fraction: the FPU rounds, and the last byte of the sum is the
// integer in two's complement.
constexpr float kToWhole = 0x1.8p23f;

inline void encode_block(const float* block, float* rest, char* out) {
  const int32_t bits = largest_bits(block);
  if (bits >= 0x7f800000) return encode_zeros(block, __builtin_nanf(""), rest, out);
  const float exact = __builtin_bit_cast(float, bits) / 127;
  const float scale = exact < kLargestScale ? exact : kLargestScale;
  const float inverse = 1 / scale;
  // The inverse of a tiny scale is infinite; such values remain in `rest`.
  if (!(inverse <= kLargestFloat)) return encode_zeros(block, 0, rest, out);
  __builtin_memcpy(out, &scale, sizeof scale);
  char numbers[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    const float shifted = block[i] * inverse + kToWhole;
    numbers[i] = static_cast<char>(__builtin_bit_cast(int32_t, shifted));
    rest[i] = block[i] - (shifted - kToWhole) * scale;
  }
  __builtin_memcpy(out + sizeof scale, numbers, kBlock);
}

inline void add_decoded(const char* block, float* to) {
  float scale = 0;
  __builtin_memcpy(&scale, block, sizeof scale);
  signed char numbers[kBlock];
  __builtin_memcpy(numbers, block + sizeof scale, kBlock);
  for (int i = 0; i < kBlock; ++i) to[i] += static_cast<float>(numbers[i]) * scale;
}

inline void decode_block(const char* block, float* to) {
  float scale = 0;
  __builtin_memcpy(&scale, block, sizeof scale);
  signed char numbers[kBlock];
  __builtin_memcpy(numbers, block + sizeof scale, kBlock);
  for (int i = 0; i < kBlock; ++i) to[i] = static_cast<float>(numbers[i]) * scale;
}

template <bool kByInverse>
inline void encode_floats(const float* values, float divisor, float* rest, char* out) {
  float sums[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    sums[i] = (kByInverse ? values[i] * (1 / divisor) : values[i] / divisor) + rest[i];
  }
  encode_block(sums, rest, out);
}

template <bool kByInverse>
void encode_all(const float* values, int64_t count, float divisor, int64_t blocks, float* rest,
                char* out) {
  const int64_t whole = count / kBlock < blocks ? count / kBlock : blocks;
  for (int64_t b = 0; b < blocks; ++b) {
    const float* from = values + b * kBlock;
    float padded[kBlock];
    if (b >= whole) {
      __builtin_memset(padded, 0, sizeof padded);
      const int64_t left = count - b * kBlock;
      for (int64_t i = 0; i < left; ++i) padded[i] = from[i];
      from = padded;
    }
    encode_floats<kByInverse>(from, divisor, rest + b * kBlock, out + b * kBlockBytes);
  }
}

// See divide_floats().
void encode_blocks(const float* values, int64_t count, int divisor, int64_t blocks, float* rest,
                   char* out) {
  const bool by_inverse = (divisor & (divisor - 1)) == 0;
  const auto encode = by_inverse ? encode_all<true> : encode_all<false>;
  encode(values, count, static_cast<float>(divisor), blocks, rest, out);
}

void sum_blocks(const char* const* ins, int num_ins, int64_t blocks, float* rest, char* out) {
  for (int64_t b = 0; b < blocks; ++b) {
    float sums[kBlock];
    __builtin_memcpy(sums, rest + b * kBlock, sizeof sums);
    for (int in = 0; in < num_ins; ++in) add_decoded(ins[in] + b * kBlockBytes, sums);
    encode_block(sums, rest + b * kBlock, out + b * kBlockBytes);
  }
}

void decode_blocks(const char* in, int64_t count, float* values) {
  const int64_t whole = count / kBlock;
  for (int64_t b = 0; b < whole; ++b) decode_block(in + b * kBlockBytes, values + b * kBlock);
  if (whole * kBlock == count) return;
  float last[kBlock];
  decode_block(in + whole * kBlockBytes, last);
  for (int64_t i = whole * kBlock; i < count; ++i) values[i] = last[i - whole * kBlock];
}

constexpr CompressKernels kCompressKernels = {narrow_to, widen_from, encode_blocks, sum_blocks,
                                              decode_blocks};

}  // namespace
// NOLINTEND(misc-definitions-in-headers)

}  // namespace lockstep::inline internal
