#pragma once
// Assigns gradients to buckets, and to their places in the bucket. Pure: no tensors, no network.

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::inline internal {

/// The plan's data of a gradient.
struct GradientSpec {
  int64_t elements = 0;
  int64_t element_bytes = 0;
  int kind = 0;  ///< Gradients of one bucket have the same kind (element type and device).

  int64_t bytes() const { return elements * element_bytes; }
};

/// Bounds of a bucket in bytes, first to last; the last one holds for all further buckets.
/// The first is small, so that traffic starts early in backward.
std::vector<int64_t> bucket_limits(int64_t cap_bytes);
inline constexpr int64_t kFirstBucketBytes = int64_t{1} << 20;

/// Indices of gradients, bucket by bucket. Walks `order` and adds each gradient to the open bucket
/// of its kind. A bucket is closed as soon as it holds at least the limit, so it may exceed the
/// limit by one gradient. Every kind has its own walk through `limits`. Buckets that are still open
/// at the end follow in the order of their first gradient. A gradient of at least `alone_bytes`
/// bytes is a bucket of its own, at its place in `order`; the open bucket stays open. `order`: a
/// permutation of 0..specs.size()-1, normally the order in which gradients become ready. Source:
/// compute_bucket_assignment_by_size of PyTorch, torch/csrc/distributed/c10d/reducer.cpp.
std::vector<std::vector<int>> plan_buckets(std::span<const GradientSpec> specs,
                                           std::span<const int> order,
                                           std::span<const int64_t> limits,
                                           int64_t alone_bytes = INT64_MAX);

/// n-1, ..., 1, 0: gradients arrive roughly in the reverse order of their parameters.
std::vector<int> reversed_order(int count);

/// Every gradient starts at a multiple of this, so that kernels may use aligned vector stores and
/// two gradients never share a cache line.
inline constexpr int64_t kGradientAlignment = 64;

struct BucketLayout {
  std::vector<int> gradients;    ///< All, as planned.
  std::vector<int> packed;       ///< The gradients in [begin, end), and
  std::vector<int64_t> offsets;  ///< where each of them starts.
  std::vector<int> placed;       ///< The others, which have their own memory.
  int64_t begin = 0;             ///< In bytes from the start of all buckets; multiples of
  int64_t end = 0;               ///< kGradientAlignment.
};

/// Packs the gradients of less than `placed_bytes` bytes, bucket after bucket, into one block of
/// memory. Its size is the last bucket's `end`. With `whole_buckets`, larger ones are packed too
/// unless they are alone in their bucket, so that every bucket is contiguous.
std::vector<BucketLayout> lay_out_buckets(std::span<const GradientSpec> specs,
                                          const std::vector<std::vector<int>>& buckets,
                                          int64_t placed_bytes, bool whole_buckets = false);

}  // namespace lockstep::inline internal
