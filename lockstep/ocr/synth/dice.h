#pragma once
// Random draws of one picture, in the order of the calls.

#include <cmath>
#include <cstdint>

#include "lockstep/base/philox.h"

namespace lockstep::ocr {

class Dice {
 public:
  /// `stream` separates kinds of pictures: equal (seed, stream, item) give equal draws.
  Dice(uint64_t seed, uint32_t stream, uint64_t item) : words_(seed, stream, item) {}

  /// In [low, high).
  double real(double low, double high) { return low + (high - low) * words_.uniform(); }
  /// In [low, high), equally likely on a logarithmic scale; low > 0.
  double log_real(double low, double high) { return std::exp(real(std::log(low), std::log(high))); }
  /// In [low, high], both ends included.
  int whole(int low, int high) {
    return low + static_cast<int>(words_.below(static_cast<uint32_t>(high - low) + 1));
  }
  bool chance(double probability) { return words_.uniform() < probability; }
  uint32_t word() { return words_.next(); }

  template <class Items>
  const auto& one_of(const Items& items) {
    return items[static_cast<size_t>(words_.below(static_cast<uint32_t>(items.size())))];
  }

 private:
  Philox words_;
};

}  // namespace lockstep::ocr
