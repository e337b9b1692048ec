#include "lockstep/comm/kernels/compress.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/comm/support/values.h"

namespace lockstep {
namespace {

using testing::Bytes;
using Floats = std::vector<float>;

std::vector<InstructionSet> compress_sets() {
  std::vector<InstructionSet> all;
  for (int i = 0; i <= static_cast<int>(best_instruction_set()); ++i) {
    all.push_back(static_cast<InstructionSet>(i));
  }
  return all;
}

struct Encoded {
  std::vector<char> bytes;
  Floats rest;
};

/// Computes one number after the other: the kernels must give the same bits.
Encoded by_hand(const Floats& sums) {
  Encoded encoded{{}, sums};
  for (auto block = encoded.rest.begin(); block != encoded.rest.end(); block += kScaledBlock) {
    float largest = 0;
    bool finite = true;
    for (auto value = block; value != block + kScaledBlock; ++value) {
      finite &= std::isfinite(*value);
      largest = std::max(largest, std::fabs(*value));
    }
    const float limit = std::nextafter(std::numeric_limits<float>::max() / 127, 0.0F);
    float scale = std::min(largest / 127, limit);
    if (std::isinf(1 / scale)) scale = 0;
    if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
    std::array<char, sizeof scale> bytes;
    std::memcpy(bytes.data(), &scale, sizeof scale);
    encoded.bytes.insert(encoded.bytes.end(), bytes.begin(), bytes.end());
    for (auto value = block; value != block + kScaledBlock; ++value) {
      const float inverse = scale > 0 ? 1 / scale : 0;
      const float whole = finite ? std::nearbyint(*value * inverse) : 0;
      const float taken = whole * scale;
      encoded.bytes.push_back(static_cast<char>(whole));
      *value = finite ? *value - taken : 0;
    }
  }
  return encoded;
}

void expect_same(const Encoded& got, const Encoded& want, InstructionSet set) {
  ASSERT_EQ(got.bytes.size(), want.bytes.size());
  for (size_t i = 0; i < got.bytes.size(); ++i) {
    const bool of_scale = i % scaled_bytes(1) < sizeof(float);
    float scale = 0;
    std::memcpy(&scale, want.bytes.data() + i - i % scaled_bytes(1), sizeof scale);
    if (of_scale && std::isnan(scale)) continue;
    ASSERT_EQ(got.bytes[i], want.bytes[i]) << "byte " << i << " " << to_string(set);
  }
  for (size_t i = 0; i < got.rest.size(); ++i) {
    ASSERT_EQ(got.rest[i], want.rest[i]) << "rest " << i << " " << to_string(set);
  }
}

/// Blocks of ordinary values of several sizes, of zeros, and of the ends of the range.
Floats edge_blocks() {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  constexpr float kHuge = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Floats values;
  for (const float size : {1.0F, 1e-20F, 1e20F, 0.0F, kTiny, 1e-37F, kHuge}) {
    for (int i = 0; i < kScaledBlock; ++i) {
      values.push_back(std::sin(static_cast<float>(i) * 1.7F) * size);
    }
    values.back() = -size;
  }
  for (const float special : {kInfinity, -kInfinity, std::nanf("")}) {
    values.insert(values.end(), kScaledBlock, 1.5F);
    values[values.size() - 77] = special;
  }
  for (int i = 0; i < kScaledBlock; ++i) {  // halves, to be rounded to even
    values.push_back(i == 0 ? 127.0F : static_cast<float>(i % 100) + 0.5F);
  }
  return values;
}

TEST(Compress, EveryInstructionSetEncodesTheSameBits) {
  const Floats values = edge_blocks();
  const auto blocks = std::ssize(values) / kScaledBlock;
  for (const int divisor : {1, 2, 3}) {
    for (const int64_t missing : {0, 1, 100, 256, 300}) {
      const int64_t count = std::ssize(values) - missing;
      Floats sums(values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const bool there = static_cast<int64_t>(i) < count;
        sums[i] = (there ? values[i] / static_cast<float>(divisor) : 0) + 0.25F;
      }
      const Encoded want = by_hand(sums);
      for (const InstructionSet set : compress_sets()) {
        Encoded got{std::vector<char>(want.bytes.size()), Floats(values.size(), 0.25F)};
        compress_kernels(set).encode_scaled(values.data(), count, divisor, blocks, got.rest.data(),
                                            got.bytes.data());
        expect_same(got, want, set);
      }
    }
  }
}

TEST(Compress, EveryInstructionSetSumsAndDecodesTheSameBits) {
  std::vector<Encoded> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    Floats values = edge_blocks();
    for (float& value : values) value /= static_cast<float>(rank + 1);
    ranks.push_back(by_hand(values));
  }
  const auto blocks = std::ssize(ranks[0].rest) / kScaledBlock;
  Floats sums(ranks[0].rest.size(), 0.125F);
  for (const Encoded& rank : ranks) {
    for (size_t i = 0; i < sums.size(); ++i) {
      const char* const block = rank.bytes.data() + scaled_bytes(static_cast<int64_t>(i) / 256);
      float scale = 0;
      std::memcpy(&scale, block, sizeof scale);
      const float value = static_cast<float>(static_cast<int8_t>(block[4 + i % 256])) * scale;
      sums[i] += value;
    }
  }
  const Encoded want = by_hand(sums);
  const std::array<const char*, 3> ins = {ranks[0].bytes.data(), ranks[1].bytes.data(),
                                          ranks[2].bytes.data()};
  for (const InstructionSet set : compress_sets()) {
    Encoded got{std::vector<char>(want.bytes.size()), Floats(sums.size(), 0.125F)};
    compress_kernels(set).sum_scaled(ins.data(), 3, blocks, got.rest.data(), got.bytes.data());
    expect_same(got, want, set);
    for (const int64_t missing : {0, 5, 256, 270}) {
      const int64_t count = std::ssize(sums) - missing;
      Floats decoded(sums.size(), 9);
      compress_kernels(set).decode_scaled(want.bytes.data(), count, decoded.data());
      for (int64_t i = 0; i < std::ssize(sums); ++i) {
        const char* const block = want.bytes.data() + scaled_bytes(i / 256);
        float scale = 0;
        std::memcpy(&scale, block, sizeof scale);
        float value = static_cast<float>(static_cast<int8_t>(block[4 + i % 256])) * scale;
        if (i >= count) value = 9;
        const float found = decoded[static_cast<size_t>(i)];
        ASSERT_TRUE(found == value || (std::isnan(found) && std::isnan(value)))
            << i << ": " << found << " " << value << " " << to_string(set);
      }
    }
  }
}

TEST(Compress, RoundsToAPartOfTheBlocksLargest) {
  Floats values, rest(size_t{3} * kScaledBlock), decoded(rest.size());
  for (int i = 0; i < 3 * kScaledBlock; ++i) {
    values.push_back(std::sin(static_cast<float>(i)) * std::pow(1000.0F, i / kScaledBlock - 1.0F));
  }
  std::vector<char> bytes(scaled_bytes(3));
  encode_scaled(values.data(), std::ssize(values), 1, 3, rest.data(), bytes.data());
  decode_scaled(bytes.data(), std::ssize(values), decoded.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const float largest = std::pow(1000.0F, static_cast<float>(i / kScaledBlock) - 1.0F);
    EXPECT_LE(std::fabs(rest[i]), largest / 253) << i;
    EXPECT_NEAR(decoded[i] + rest[i], values[i], largest * 1e-6) << i;
  }
}

// No value of the type is nearer than the result.
void expect_nearest(float exact, uint16_t taken, DType dtype) {
  const std::array<uint16_t, 3> bits = {taken, static_cast<uint16_t>(taken - 1),
                                        static_cast<uint16_t>(taken + 1)};
  Bytes bytes(sizeof bits);
  std::memcpy(bytes.data(), bits.data(), sizeof bits);
  const double value = testing::element_as_double(dtype, bytes, 0);
  if (!std::isfinite(value)) {
    const double largest = dtype == DType::kFloat16 ? 65520 : 0x1.ffp127;
    ASSERT_TRUE(std::isnan(exact) ? std::isnan(value) : std::fabs(exact) >= largest) << exact;
    return;
  }
  for (const int64_t k : {1, 2}) {
    const double other = testing::element_as_double(dtype, bytes, k);
    if (!std::isfinite(other)) continue;
    const double off = std::fabs(value - exact), other_off = std::fabs(other - exact);
    ASSERT_TRUE(off < other_off || (off == other_off && taken % 2 == 0)) << exact << " " << value;
  }
}

TEST(Compress, SixteenBitFloatsAreTheNearest) {
  Floats values = edge_blocks();
  for (int i = 0; i < 1 << 14; ++i) {
    const float part = static_cast<float>(i) * 0x1p-14F;
    values.push_back(std::ldexp(1 + part, i % 255 - 127));
    values.push_back(-std::ldexp(1 + part, i % 42 - 26));  // the range of float16
  }
  values.resize(values.size() - 3);  // the last vector is not full
  const auto count = std::ssize(values);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const int divisor : {1, 2, 3}) {
      for (const InstructionSet set : compress_sets()) {
        SCOPED_TRACE(to_string(set));
        std::vector<uint16_t> narrowed(values.size());
        Floats widened(values.size());
        compress_kernels(set).narrow(values.data(), count, divisor, dtype, narrowed.data());
        compress_kernels(set).widen(narrowed.data(), count, dtype, widened.data());
        Bytes bytes(2 * values.size());
        std::memcpy(bytes.data(), narrowed.data(), bytes.size());
        for (int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<size_t>(i);
          const double wide = testing::element_as_double(dtype, bytes, i);
          ASSERT_TRUE(widened[at] == wide || (std::isnan(widened[at]) && std::isnan(wide))) << i;
          expect_nearest(values[at] / static_cast<float>(divisor), narrowed[at], dtype);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
