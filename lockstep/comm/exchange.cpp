#include "lockstep/comm/exchange.h"

#include <algorithm>

namespace lockstep::inline internal {
namespace {

int64_t reach(const std::vector<ExchangeBlock>& blocks) {
  int64_t end = 0;
  for (const auto& block : blocks) {
    if (block.count > 0) end = std::max(end, block.end());
  }
  return end;
}

/// Contiguous blocks.
std::vector<ExchangeBlock> packed(std::span<const int64_t> counts) {
  std::vector<ExchangeBlock> blocks;
  int64_t offset = 0;
  for (const int64_t count : counts) {
    blocks.push_back({offset, count});
    offset += count;
  }
  return blocks;
}

std::vector<ExchangeBlock> equal(int size, int64_t count) {
  return packed(std::vector<int64_t>(static_cast<size_t>(size), count));
}

Exchange empty_exchange(ExchangeKind kind, int size, int64_t count, DType dtype, int root) {
  Exchange exchange{kind, dtype, count, root, {}, {}};
  exchange.sends.resize(static_cast<size_t>(size));
  exchange.receives.resize(static_cast<size_t>(size));
  return exchange;
}

}  // namespace

std::string_view to_string(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::kGather:
      return "gather";
    case ExchangeKind::kScatter:
      return "scatter";
    case ExchangeKind::kAllToAll:
      return "all_to_all";
    case ExchangeKind::kAllGatherv:
      return "all_gatherv";
    case ExchangeKind::kAllToAllv:
      return "all_to_allv";
  }
  return "unknown";
}

int64_t Exchange::in_count() const {
  return reach(sends);
}

int64_t Exchange::out_count() const {
  return reach(receives);
}

Exchange gather_exchange(int rank, int size, int64_t count, DType dtype, int root) {
  auto exchange = empty_exchange(ExchangeKind::kGather, size, count, dtype, root);
  exchange.sends[static_cast<size_t>(root)] = {0, count};
  if (rank == root) exchange.receives = equal(size, count);
  return exchange;
}

Exchange scatter_exchange(int rank, int size, int64_t count, DType dtype, int root) {
  auto exchange = empty_exchange(ExchangeKind::kScatter, size, count, dtype, root);
  exchange.receives[static_cast<size_t>(root)] = {0, count};
  if (rank == root) exchange.sends = equal(size, count);
  return exchange;
}

Exchange all_to_all_exchange(int /*rank*/, int size, int64_t count, DType dtype) {
  return {ExchangeKind::kAllToAll, dtype, count, 0, equal(size, count), equal(size, count)};
}

Exchange all_gatherv_exchange(int rank, std::span<const int64_t> counts, DType dtype) {
  const ExchangeBlock own{0, counts[static_cast<size_t>(rank)]};
  return {ExchangeKind::kAllGatherv,
          dtype,
          0,
          0,
          std::vector<ExchangeBlock>(counts.size(), own),
          packed(counts)};
}

Exchange all_to_allv_exchange(std::span<const int64_t> sends, std::span<const int64_t> receives,
                              DType dtype) {
  return {ExchangeKind::kAllToAllv, dtype, 0, 0, packed(sends), packed(receives)};
}

Exchange among(const Exchange& exchange, std::span<const int> ranks) {
  Exchange part{exchange.kind, exchange.dtype, exchange.count, exchange.root, {}, {}};
  for (const int rank : ranks) {
    part.sends.push_back(exchange.sends[static_cast<size_t>(rank)]);
    part.receives.push_back(exchange.receives[static_cast<size_t>(rank)]);
  }
  return part;
}

OutStream::OutStream(std::span<const ExchangeBlock> sends, int self) {
  std::vector<ExchangeBlock> wanted;
  for (int rank = 0; rank < static_cast<int>(sends.size()); ++rank) {
    const auto& block = sends[static_cast<size_t>(rank)];
    if (rank != self && block.count > 0) wanted.push_back(block);
  }
  std::sort(wanted.begin(), wanted.end(),
            [](const ExchangeBlock& a, const ExchangeBlock& b) { return a.offset < b.offset; });
  for (const auto& block : wanted) {
    if (ranges_.empty() || block.offset > ranges_.back().end()) {
      ranges_.push_back(block);
    } else {
      ranges_.back().count = std::max(ranges_.back().end(), block.end()) - ranges_.back().offset;
    }
  }
  for (const auto& range : ranges_) size_ += range.count;
}

int64_t OutStream::position_of(const ExchangeBlock& block) const {
  int64_t position = 0;
  for (const auto& range : ranges_) {
    if (block.offset < range.end()) return position + block.offset - range.offset;
    position += range.count;
  }
  return position;
}

std::vector<ExchangeBlock> OutStream::parts(int64_t begin, int64_t end) const {
  std::vector<ExchangeBlock> parts;
  int64_t position = 0;
  for (const auto& range : ranges_) {
    const int64_t from = std::max(begin, position);
    const int64_t to = std::min(end, position + range.count);
    if (from < to) parts.push_back({range.offset + from - position, to - from});
    position += range.count;
  }
  return parts;
}

}  // namespace lockstep::inline internal
