#include "lockstep/comm/tree_sum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "lockstep/comm/kernels/reduce.h"

namespace lockstep::inline internal {
namespace {

/// Scratch of one value, while additions run one after the other: all blocks stay in the cache.
constexpr int64_t kBlockBytes = 16 << 10;

void copy_out(const void* value, std::span<void* const> outs, size_t bytes) {
  for (void* out : outs) {
    if (out != value) std::memcpy(out, value, bytes);
  }
}

std::vector<RankRange> leaves(size_t count) {
  std::vector<RankRange> nodes;
  for (int i = 0; i < static_cast<int>(count); ++i) nodes.push_back({i, i + 1});
  return nodes;
}

}  // namespace

bool has_plain_shape(const std::vector<RankRange>& nodes, int size) {
  return tree_additions(nodes, size) ==
         tree_additions(leaves(nodes.size()), static_cast<int>(nodes.size()));
}

TreeSum::TreeSum(std::vector<RankRange> nodes, int size)
    : nodes_(std::move(nodes)),
      size_(size),
      additions_(tree_additions(nodes_, size)),
      plain_(has_plain_shape(nodes_, size)) {}

void TreeSum::run(std::span<const void* const> values, std::span<void* const> outs, int64_t count,
                  DType dtype, ReduceOp op) const {
  if (plain_) return reduce(values, outs, count, dtype, op, size_);
  const int64_t block = kBlockBytes / size_of(dtype);
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(values.size() * kBlockBytes);
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t offset = begin * size_of(dtype);
    std::vector<const void*> block_values;
    std::vector<void*> block_outs;
    for (const void* value : values)
      block_values.push_back(static_cast<const std::byte*>(value) + offset);
    for (void* out : outs) block_outs.push_back(static_cast<std::byte*>(out) + offset);
    run_block(std::move(block_values), block_outs, std::min(block, count - begin), dtype, op,
              scratch.get());
  }
}

void TreeSum::run_block(std::vector<const void*> values, std::span<void* const> outs, int64_t count,
                        DType dtype, ReduceOp op, std::byte* scratch) const {
  for (size_t i = 0; i < additions_.size(); ++i) {
    const auto left = static_cast<size_t>(additions_[i].left);
    const std::array<const void*, 2> ins{values[left],
                                         values[static_cast<size_t>(additions_[i].right)]};
    if (i + 1 == additions_.size()) return reduce(ins, outs, count, dtype, op, size_);
    void* const sum = scratch + left * kBlockBytes;
    reduce(ins, std::span(&sum, 1), count, dtype, below_the_root(op), 1);
    values[left] = sum;
  }
  copy_out(values[0], outs, static_cast<size_t>(count * size_of(dtype)));
}

}  // namespace lockstep::inline internal
