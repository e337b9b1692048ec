#include "lockstep/data/pictures/buffer_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lockstep/base/philox.h"

namespace lockstep::inline internal {
namespace {

/// The epoch's third highest bit: see kMixingStream.
constexpr uint32_t kOrderStream = 0x20000000;

/// Each place, from the front, takes one of itself and the `buffer` - 1 places behind it. What
/// stood there moves to the room that becomes free, so these places are the buffer.
void draw_from_buffer(std::vector<int64_t>& items, int64_t buffer, Philox& random) {
  const int64_t size = std::ssize(items);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t step = random.below(static_cast<uint32_t>(std::min(buffer, size - i)));
    std::swap(items[static_cast<size_t>(i)], items[static_cast<size_t>(i + step)]);
  }
}

}  // namespace

std::vector<int64_t> buffer_order(std::span<const int64_t> firsts, int64_t n, int64_t buffer,
                                  int64_t seed) {
  Philox random(static_cast<uint64_t>(seed), kOrderStream, 0);
  std::vector<int64_t> shards(firsts.size());
  std::iota(shards.begin(), shards.end(), 0);
  draw_from_buffer(shards, std::ssize(shards), random);

  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(n));
  for (const int64_t shard : shards) {
    const auto next = static_cast<size_t>(shard + 1);
    const int64_t end = next < firsts.size() ? firsts[next] : n;
    for (int64_t sample = firsts[next - 1]; sample < end; ++sample) order.push_back(sample);
  }
  draw_from_buffer(order, buffer, random);
  return order;
}

}  // namespace lockstep::inline internal
