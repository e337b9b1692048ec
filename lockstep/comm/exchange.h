#pragma once
// Collectives that only move data, each described as one exchange: blocks that a rank sends to
// every other, and places of received blocks. Pure functions; a back end carries out any Exchange.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/types.h"

namespace lockstep::inline internal {

enum class ExchangeKind : uint8_t { kGather, kScatter, kAllToAll, kAllGatherv, kAllToAllv };
/// "all_to_allv".
std::string_view to_string(ExchangeKind kind);

/// The part of a buffer for one rank, or from it: `count` elements, starting at element `offset`.
/// MPI calls it a block, and the offset its displacement.
struct ExchangeBlock {
  int64_t offset = 0;
  int64_t count = 0;
  int64_t end() const { return offset + count; }
  bool operator==(const ExchangeBlock&) const = default;
};

/// One rank's part in an exchange. Blocks to several receivers may share elements; received blocks
/// never overlap.
struct Exchange {
  ExchangeKind kind = ExchangeKind::kAllToAllv;
  DType dtype = DType::kUint8;
  int64_t count = 0;  ///< Elements of every block of the even kinds; 0 for the uneven.
  int root = 0;       ///< Of gather and scatter; 0 for the others.
  std::vector<ExchangeBlock> sends;     ///< By rank: the block of the input for that rank.
  std::vector<ExchangeBlock> receives;  ///< By rank: the place in the output for its block.

  /// True if all ranks know all counts once they agree on kind, count and root.
  bool even() const {
    return kind != ExchangeKind::kAllGatherv && kind != ExchangeKind::kAllToAllv;
  }
  /// Elements of the input (output) up to the end of the last block.
  int64_t in_count() const;
  int64_t out_count() const;
  int64_t bytes() const { return (in_count() + out_count()) * size_of(dtype); }
};

/// Root gets count elements of every rank, in rank order.
Exchange gather_exchange(int rank, int size, int64_t count, DType dtype, int root);
/// Rank r gets elements [r * count, (r + 1) * count) of root's input.
Exchange scatter_exchange(int rank, int size, int64_t count, DType dtype, int root);
/// Rank r gets elements [r * count, (r + 1) * count) of every rank's input, in rank order.
Exchange all_to_all_exchange(int rank, int size, int64_t count, DType dtype);
/// Every rank gets counts[r] elements of each rank r, in rank order.
Exchange all_gatherv_exchange(int rank, std::span<const int64_t> counts, DType dtype);
/// sends[r] elements go to rank r, receives[r] come from it; both are packed in rank order.
Exchange all_to_allv_exchange(std::span<const int64_t> sends, std::span<const int64_t> receives,
                              DType dtype);

/// The same exchange limited to `ranks` of the group, numbered by their place in the list.
Exchange among(const Exchange& exchange, std::span<const int> ranks);

/// The data that a rank sends to others, as one stream: each element that another rank needs, once,
/// in the order of the input. Numbers are elements.
class OutStream {
 public:
  OutStream(std::span<const ExchangeBlock> sends, int self);

  int64_t size() const { return size_; }
  /// Position in the stream at which a block for another rank begins.
  int64_t position_of(const ExchangeBlock& block) const;
  /// The parts of the input that form [begin, end) of the stream.
  std::vector<ExchangeBlock> parts(int64_t begin, int64_t end) const;

 private:
  std::vector<ExchangeBlock> ranges_;  // sorted, apart
  int64_t size_ = 0;
};

}  // namespace lockstep::inline internal
