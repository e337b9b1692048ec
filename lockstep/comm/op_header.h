#pragma once
// What each rank says about an operation before it starts, and how two such sayings are compared.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/comm/exchange.h"
#include "lockstep/types.h"

namespace lockstep {

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

/// Travels as it is, through memory or over the wire, so fields are fixed and unused ones zero.
struct OpHeader {
  uint64_t sequence = 0;  ///< 1 for a group's first operation.
  /// Elements; bytes for kAllocate; 0 where ranks may give different ones (kAllGatherv,
  /// kAllToAllv).
  int64_t count = 0;
  int32_t root = 0;  ///< For the kinds that have one.
  OpKind kind = OpKind::kNone;
  DType dtype = DType::kUint8;
  ReduceOp op = ReduceOp::kSum;  ///< For the reductions.
  uint8_t unused = 0;
  bool operator==(const OpHeader&) const = default;
};
static_assert(sizeof(OpHeader) == 24);

/// Without a sequence: whoever runs the operation numbers it.
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

/// What is wrong with a header that came from elsewhere (an enumerator that does not exist, a
/// negative count); nothing when it is well-formed.
std::optional<std::string> malformed(const OpHeader& header);

/// The text of a kMismatch when `a` and `b` are not the same operation; nothing when they are.
/// "rank 0 called all_reduce #3 (...), rank 1 called broadcast #3 (...)".
std::optional<std::string> mismatch(const OpHeader& a, std::string_view name_a, const OpHeader& b,
                                    std::string_view name_b);

/// The text of a kMismatch when the two ends of one piece of an uneven exchange differ.
/// "all_to_allv #3 (...): rank 0 sends 4 elements to rank 1, which expects 5".
std::string uneven(const OpHeader& header, std::string_view sender, int64_t sent,
                   std::string_view receiver, int64_t expected);

}  // namespace lockstep
