#include "lockstep/parallel/subtree_reduction.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "lockstep/base/rounding.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kCacheLineBytes = 64;

std::vector<int64_t> subtrees_by_rank(int virtual_ranks, int size) {
  std::vector<int64_t> counts;
  for (int rank = 0; rank < size; ++rank) {
    counts.push_back(std::ssize(owned_subtrees(deal_virtual_ranks(virtual_ranks, rank, size))));
  }
  return counts;
}

}  // namespace

SubtreeReduction::SubtreeReduction(ProcessGroup group, const VirtualRankRange& range,
                                   int64_t max_bytes)
    : group_(std::move(group)),
      subtrees_of_(subtrees_by_rank(range.total, group_.size())),
      sum_(all_subtrees(range.total, group_.size()), range.total),
      chunk_bytes_(round_up(std::clamp<int64_t>(max_bytes, 1, kChunkBytes), kCacheLineBytes)) {
  // The largest slice of a chunk: see slice_of().
  const int64_t slice_bytes = round_up(divide_up(chunk_bytes_, group_.size()), kCacheLineBytes);
  sent_bytes_ = *std::max_element(subtrees_of_.begin(), subtrees_of_.end()) * chunk_bytes_;
  received_bytes_ = std::ssize(sum_.nodes()) * slice_bytes;
  memory_ = group_.allocate(2 * (sent_bytes_ + received_bytes_));
}

SubtreeReduction::~SubtreeReduction() {
  abandon();
}

std::byte* SubtreeReduction::sent_place(int place) const {
  return static_cast<std::byte*>(memory_->data()) + place * sent_bytes_;
}

std::byte* SubtreeReduction::received_place(int place) const {
  return sent_place(2) + place * received_bytes_;
}

Span SubtreeReduction::slice(const Chunk& chunk, int rank) const {
  return slice_of(chunk.count, group_.size(), rank, kCacheLineBytes / size_of(chunk.dtype));
}

std::function<void()> SubtreeReduction::start(std::span<const void* const> values, void* out,
                                              int64_t count, DType dtype, CallSite site) {
  const int64_t sum = num_sums_++;
  const int64_t chunk_count = chunk_bytes_ / size_of(dtype);
  for (int64_t begin = 0; begin < count; begin += chunk_count) {
    const int64_t offset = begin * size_of(dtype);
    send(values, offset,
         {.sum = sum,
          .out = static_cast<std::byte*>(out) + offset,
          .count = std::min(chunk_count, count - begin),
          .dtype = dtype,
          .place = std::exchange(next_place_, 1 - next_place_),
          .site = site,
          .arrival = {}});
  }
  return [this, sum] { finish(sum); };
}

/// Sends every rank its slice of this rank's values, subtree after subtree. Then it adds the chunk
/// sent before, whose send buffer is then free again.
void SubtreeReduction::send(std::span<const void* const> values, int64_t offset, Chunk chunk) {
  const auto own = static_cast<size_t>(group_.rank());
  const int64_t element_bytes = size_of(chunk.dtype);
  std::vector<int64_t> sent, received;
  std::byte* to = sent_place(chunk.place);
  const int64_t own_count = slice(chunk, group_.rank()).size();
  for (int rank = 0; rank < group_.size(); ++rank) {
    const Span part = slice(chunk, rank);
    for (const void* value : values) {
      std::memcpy(to, static_cast<const std::byte*>(value) + offset + part.begin * element_bytes,
                  static_cast<size_t>(part.size() * element_bytes));
      to += part.size() * element_bytes;
    }
    sent.push_back(std::ssize(values) * part.size());
    received.push_back(subtrees_of_[static_cast<size_t>(rank)] * own_count);
  }
  received[own] = sent[own];
  chunk.arrival = group_.all_to_allv(sent_place(chunk.place), sent, received_place(chunk.place),
                                     received, chunk.dtype, {.async = true}, chunk.site);
  // First, so that abandon() knows of it even if the addition of the previous one fails.
  auto before = std::exchange(on_its_way_, std::move(chunk));
  if (before) add(std::move(*before));
}

/// In the order of the tree's nodes, which is the order of the ranks.
std::vector<const void*> SubtreeReduction::arrived(const Chunk& chunk) const {
  const int64_t bytes = slice(chunk, group_.rank()).size() * size_of(chunk.dtype);
  std::vector<const void*> values;
  for (size_t node = 0; node < sum_.nodes().size(); ++node) {
    values.push_back(received_place(chunk.place) + static_cast<int64_t>(node) * bytes);
  }
  return values;
}

void SubtreeReduction::add(Chunk chunk) {
  chunk.arrival.wait();
  const Span own = slice(chunk, group_.rank());
  void* const out = chunk.out + own.begin * size_of(chunk.dtype);
  sum_.run(arrived(chunk), std::span(&out, 1), own.size(), chunk.dtype, ReduceOp::kSum);
  std::vector<int64_t> counts;
  for (int rank = 0; rank < group_.size(); ++rank) counts.push_back(slice(chunk, rank).size());
  gathers_[chunk.sum].push_back(
      group_.all_gatherv(out, chunk.out, counts, chunk.dtype, {.async = true}, chunk.site));
}

void SubtreeReduction::finish(int64_t sum) {
  if (on_its_way_ && on_its_way_->sum <= sum) add(*std::exchange(on_its_way_, std::nullopt));
  const auto found = gathers_.find(sum);
  if (found == gathers_.end()) return;
  for (Work& work : found->second) work.wait();
  gathers_.erase(found);  // not earlier: abandon() waits for operations that an error leaves
}

void SubtreeReduction::abandon() noexcept {
  const auto wait = [](Work& work) {
    try {
      work.wait();
    } catch (const std::exception&) {
      // The caller reports its own error; the group keeps this one.
    }
  };
  if (on_its_way_) wait(on_its_way_->arrival);
  on_its_way_.reset();
  for (auto& [sum, works] : gathers_) std::for_each(works.begin(), works.end(), wait);
  gathers_.clear();
}

std::vector<double> sum_over_virtual_ranks(ProcessGroup& group, const VirtualRankRange& range,
                                           const std::vector<std::vector<double>>& rows) {
  std::vector<double> own, all(rows.size() * static_cast<size_t>(range.total));
  for (int leaf = 0; leaf < range.count; ++leaf) {
    for (const auto& row : rows) own.push_back(row[static_cast<size_t>(leaf)]);
  }
  std::vector<int64_t> counts;
  for (int rank = 0; rank < group.size(); ++rank) {
    const int leaves = deal_virtual_ranks(range.total, rank, group.size()).count;
    counts.push_back(leaves * std::ssize(rows));
  }
  group.all_gatherv(own.data(), all.data(), counts, DType::kFloat64).wait();
  std::vector<double> sums;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<double> leaves;
    for (size_t at = i; at < all.size(); at += rows.size()) leaves.push_back(all[at]);
    sums.push_back(tree_sum(leaves));
  }
  return sums;
}

}  // namespace lockstep::inline internal
