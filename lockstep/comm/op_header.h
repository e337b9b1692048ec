#pragma once
// The description of an operation that each rank gives before it starts, and the comparison of two
// descriptions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/comm/exchange.h"
#include "lockstep/types.h"

namespace lockstep::inline internal {

enum class OpKind : uint8_t {
  kNone,
  kAllReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kBarrier,
  kAllocate,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kAllGatherv,
  kAllToAllv,
};
inline constexpr int kNumOpKinds = 13;
/// "all_reduce".
std::string_view to_string(OpKind kind);
OpKind op_kind(ExchangeKind kind);

/// Copied as bytes through memory or over the wire, so fields have fixed sizes and unused ones are
/// zero.
struct OpHeader {
  uint64_t sequence = 0;  ///< 1 for a group's first operation.
  /// Elements; bytes for kAllocate; 0 if ranks may give different counts (kAllGatherv, kAllToAllv).
  int64_t count = 0;
  int32_t root = 0;  ///< For the kinds that have one.
  OpKind kind = OpKind::kNone;
  DType dtype = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;  ///< For reductions.
  uint8_t unused = 0;
  bool operator==(const OpHeader&) const = default;
};
static_assert(sizeof(OpHeader) == 24);

/// Without a sequence number: the code that runs the operation sets it.
constexpr OpHeader header_of(OpKind kind, int64_t count, DType dtype = DType::kUint8,
                             ReduceOp op = ReduceOp::kSum, int root = 0) {
  return {.count = count, .root = root, .kind = kind, .dtype = dtype, .op = op};
}
/// Of an exchange; the count is 0 for the uneven kinds.
inline OpHeader header_of(const Exchange& exchange) {
  return header_of(op_kind(exchange.kind), exchange.count, exchange.dtype, ReduceOp::kSum,
                   exchange.root);
}

/// "all_reduce #12 (float32, 1024 elements, sum)". Never fails, whatever the bytes.
std::string describe(const OpHeader& header);

/// The defect of a received header (an enumerator that does not exist, a negative count); nothing
/// if it is well-formed.
std::optional<std::string> malformed(const OpHeader& header);

/// The text of a kMismatch if `a` and `b` are not the same operation; else nothing. "rank 0 called
/// all_reduce #3 (...), rank 1 called broadcast #3 (...)".
std::optional<std::string> mismatch(const OpHeader& a, std::string_view name_a, const OpHeader& b,
                                    std::string_view name_b);

/// The text of a kMismatch if the two ends of one piece of an uneven exchange differ. "all_to_allv
/// #3 (...): rank 0 sends 4 elements to rank 1, which expects 5".
std::string uneven(const OpHeader& header, std::string_view sender, int64_t sent,
                   std::string_view receiver, int64_t expected);

}  // namespace lockstep::inline internal
