#include "lockstep/ocr/data/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lockstep/base/philox.h"

namespace lockstep::ocr {

int64_t sampled_count(int64_t count, double ratio) {
  return std::clamp<int64_t>(std::llrint(static_cast<double>(count) * ratio), 0, count);
}

std::vector<uint32_t> shuffled(uint32_t count, uint64_t seed, uint64_t stream) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  Philox draws(seed, 0, stream);
  for (uint32_t left = count; left > 1; --left) {
    std::swap(order[left - 1], order[static_cast<size_t>(draws.below(left))]);
  }
  return order;
}

}  // namespace lockstep::ocr
