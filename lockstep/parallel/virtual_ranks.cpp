#include "lockstep/parallel/virtual_ranks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/cuda.h>

#include <algorithm>
#include <mutex>

#include "lockstep/base/counted.h"
#include "lockstep/comm/tree_sum.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// A bijective mixing of 64 bits. Source: Steele et al., "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014 (SplitMix64).
uint64_t mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

}  // namespace
}  // namespace lockstep::inline internal

namespace lockstep {

VirtualRankRange deal_virtual_ranks(int virtual_ranks, int rank, int size) {
  if (virtual_ranks < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} virtual ranks; there must be at least 1", virtual_ranks));
  }
  if (rank < 0 || rank >= size) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("rank {} of {} ranks", rank, size));
  }
  if (size > virtual_ranks) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} cannot share {}: each needs at least one; start at most {}, or take "
                    "more virtual ranks",
                    counted(size, "rank"), counted(virtual_ranks, "virtual rank"),
                    counted(virtual_ranks, "rank")));
  }
  const int count = virtual_ranks / size;
  const int longer = virtual_ranks % size;
  return {rank * count + std::min(rank, longer), count + (rank < longer ? 1 : 0), virtual_ranks};
}

}  // namespace lockstep

namespace lockstep::inline internal {

std::vector<RankRange> owned_subtrees(const VirtualRankRange& range) {
  return tree_nodes({range.first, range.first + range.count}, range.total);
}

std::vector<RankRange> all_subtrees(int virtual_ranks, int size) {
  std::vector<RankRange> all;
  for (int rank = 0; rank < size; ++rank) {
    const auto own = owned_subtrees(deal_virtual_ranks(virtual_ranks, rank, size));
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

bool ranks_add_as_tree(int virtual_ranks, int size) {
  if (virtual_ranks == size || size == 1) return true;
  const auto subtrees = all_subtrees(virtual_ranks, size);
  return std::ssize(subtrees) == size && has_plain_shape(subtrees, virtual_ranks);
}

int sums_to_add(const VirtualRankRange& range, int index) {
  const auto sums = [&](int leaves) {
    return std::ssize(tree_nodes({range.first, range.first + leaves}, range.total));
  };
  return static_cast<int>(sums(index) + 1 - sums(index + 1));
}

double tree_sum(std::span<const double> leaves) {
  if (leaves.size() <= 1) return leaves.empty() ? 0 : leaves.front();
  const auto mid = static_cast<size_t>(tree_mid(0, static_cast<int>(leaves.size())));
  return tree_sum(leaves.first(mid)) + tree_sum(leaves.subspan(mid));
}

std::vector<int64_t> lay_in_turn(const std::vector<std::vector<int64_t>>& lists, int64_t batch) {
  std::vector<int64_t> all;
  const int64_t length = lists.empty() ? 0 : std::ssize(lists.front());
  all.reserve(lists.size() * static_cast<size_t>(length));
  for (int64_t begin = 0; begin < length; begin += batch) {
    const int64_t end = std::min(begin + batch, length);
    for (const auto& list : lists) all.insert(all.end(), list.begin() + begin, list.begin() + end);
  }
  return all;
}

void seed_virtual_rank(uint64_t seed, int64_t step, int virtual_rank, c10::Device device) {
  const uint64_t key =
      mix(mix(mix(seed) ^ static_cast<uint64_t>(step)) ^ static_cast<uint64_t>(virtual_rank));
  if (device.is_cuda()) torch::cuda::manual_seed(key);  // of the current device
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(key);
}

}  // namespace lockstep::inline internal

namespace lockstep {

void seed_virtual_rank(uint64_t seed, int64_t step, int virtual_rank) {
  seed_virtual_rank(seed, step, virtual_rank, c10::kCPU);
}

}  // namespace lockstep
