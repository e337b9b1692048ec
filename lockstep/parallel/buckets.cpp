#include "lockstep/parallel/buckets.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "lockstep/base/rounding.h"

namespace lockstep::inline internal {
namespace {

struct OpenBucket {
  std::vector<int> gradients;
  int64_t bytes = 0;
  size_t limit = 0;  ///< Index into the limits.
};

}  // namespace

std::vector<int64_t> bucket_limits(int64_t cap_bytes) {
  return {std::min(kFirstBucketBytes, cap_bytes), cap_bytes};
}

std::vector<std::vector<int>> plan_buckets(std::span<const GradientSpec> specs,
                                           std::span<const int> order,
                                           std::span<const int64_t> limits, int64_t alone_bytes) {
  std::vector<std::vector<int>> closed;
  std::map<int, OpenBucket> open;  // by kind
  std::vector<int> kinds;          // in the order in which their open buckets began
  for (const int index : order) {
    const GradientSpec& spec = specs[static_cast<size_t>(index)];
    if (spec.bytes() >= alone_bytes) {
      closed.push_back({index});
      continue;
    }
    OpenBucket& bucket = open[spec.kind];
    if (bucket.gradients.empty()) kinds.push_back(spec.kind);
    bucket.gradients.push_back(index);
    bucket.bytes += spec.bytes();
    if (bucket.bytes < limits[bucket.limit]) continue;
    closed.push_back(std::exchange(bucket.gradients, {}));
    std::erase(kinds, spec.kind);
    bucket.bytes = 0;
    bucket.limit = std::min(bucket.limit + 1, limits.size() - 1);
  }
  for (const int kind : kinds) closed.push_back(std::move(open[kind].gradients));
  return closed;
}

std::vector<int> reversed_order(int count) {
  std::vector<int> order(static_cast<size_t>(count));
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

std::vector<BucketLayout> lay_out_buckets(std::span<const GradientSpec> specs,
                                          const std::vector<std::vector<int>>& buckets,
                                          int64_t placed_bytes, bool whole_buckets) {
  std::vector<BucketLayout> layouts;
  int64_t end = 0;
  for (const auto& gradients : buckets) {
    BucketLayout layout;
    layout.gradients = gradients;
    layout.begin = end;
    const bool may_place = !whole_buckets || gradients.size() == 1;
    for (const int index : gradients) {
      const int64_t bytes = specs[static_cast<size_t>(index)].bytes();
      if (may_place && bytes >= placed_bytes) {
        layout.placed.push_back(index);
        continue;
      }
      layout.packed.push_back(index);
      layout.offsets.push_back(end);
      end = round_up(end + bytes, kGradientAlignment);
    }
    layout.end = end;
    layouts.push_back(std::move(layout));
  }
  return layouts;
}

}  // namespace lockstep::inline internal
