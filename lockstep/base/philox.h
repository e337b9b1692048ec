#pragma once
// Counter-based random numbers: word i of a stream is a function of (key, counter, i) alone. So a
// sample's numbers depend neither on other samples nor on thread, rank or order. Source: Salmon et
// al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011: Philox4x32-10.

#include <array>
#include <cstdint>

namespace lockstep::inline internal {

using PhiloxBlock = std::array<uint32_t, 4>;

constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// The stream of 32-bit words of one item. Cost: ten rounds per four words.
class Philox {
 public:
  /// Key: `seed`. Counter: `item` (64 bits), `round` (32 bits: the epoch), block of four words.
  Philox(uint64_t seed, uint32_t round, uint64_t item)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{static_cast<uint32_t>(item), static_cast<uint32_t>(item >> 32), round, 0} {}

  uint32_t next() {
    if (used_ == 4) {
      words_ = philox4x32(counter_, key_);
      ++counter_[3];
      used_ = 0;
    }
    return words_[used_++];
  }

  /// In [0, n), n >= 1. Each value's probability is 1/n to within 2^-32.
  int64_t below(uint32_t n) { return static_cast<int64_t>((uint64_t{next()} * n) >> 32); }

  /// In [0, 1), a multiple of 2^-32.
  double uniform() { return next() * 0x1p-32; }

 private:
  std::array<uint32_t, 2> key_;
  PhiloxBlock counter_;
  PhiloxBlock words_{};
  uint32_t used_ = 4;
};

}  // namespace lockstep::inline internal
