#include "lockstep/parallel/virtual_ranks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/cuda.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <string>

#include "lockstep/base/counted.h"
#include "lockstep/comm/reduce_tree.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

bool can_share(int virtual_ranks, int size) {
  if (size == 1) return true;
  return virtual_ranks % size == 0 &&
         std::has_single_bit(static_cast<unsigned>(virtual_ranks / size));
}

/// "1, 2, 4 or 8 ranks".
std::string allowed_sizes(int virtual_ranks) {
  std::vector<int> sizes;
  for (int size = 1; size <= virtual_ranks; ++size) {
    if (can_share(virtual_ranks, size)) sizes.push_back(size);
  }
  if (sizes.size() == 1) return counted(sizes.front(), "rank");
  std::string text = fmt::format("{}", sizes.front());
  for (size_t i = 1; i < sizes.size(); ++i) {
    text += fmt::format("{}{}", i + 1 == sizes.size() ? " or " : ", ", sizes[i]);
  }
  return text + " ranks";
}

/// A one-to-one mixing of 64 bits. Source: Steele et al., "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014 (SplitMix64).
uint64_t mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

}  // namespace

VirtualRankRange deal_virtual_ranks(int virtual_ranks, int rank, int size) {
  if (virtual_ranks < 1 || !can_share(virtual_ranks, size)) {
    throw Error(ErrorCode::kInvalidArgument,
                virtual_ranks < 1
                    ? fmt::format("{} virtual ranks; there must be at least 1", virtual_ranks)
                    : fmt::format("{} cannot share {}: each needs equally many "
                                  "and a power of two of them; {} can",
                                  counted(size, "rank"), counted(virtual_ranks, "virtual rank"),
                                  allowed_sizes(virtual_ranks)));
  }
  const int count = virtual_ranks / size;
  return {rank * count, count, virtual_ranks};
}

int sums_to_add(int index, int count) {
  const auto bits = static_cast<unsigned>(index);
  return index + 1 == count ? std::popcount(bits) : std::countr_one(bits);
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

}  // namespace lockstep
