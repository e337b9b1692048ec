#include "lockstep/comm/op_header.h"

#include <fmt/format.h>

#include "lockstep/comm/kernels/element_types.h"

namespace lockstep::inline internal {
namespace {

bool reduces(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kReduce;
}

bool has_root(OpKind kind) {
  return kind == OpKind::kBroadcast || kind == OpKind::kReduce || kind == OpKind::kGather ||
         kind == OpKind::kScatter;
}

bool is_uneven(OpKind kind) {
  return kind == OpKind::kAllGatherv || kind == OpKind::kAllToAllv;
}

}  // namespace

std::string_view to_string(OpKind kind) {
  switch (kind) {
    case OpKind::kNone:
      return "nothing";
    case OpKind::kAllReduce:
      return "all_reduce";
    case OpKind::kBroadcast:
      return "broadcast";
    case OpKind::kAllGather:
      return "all_gather";
    case OpKind::kReduceScatter:
      return "reduce_scatter";
    case OpKind::kBarrier:
      return "barrier";
    case OpKind::kAllocate:
      return "allocate";
    case OpKind::kReduce:
      return "reduce";
    case OpKind::kGather:
      return to_string(ExchangeKind::kGather);
    case OpKind::kScatter:
      return to_string(ExchangeKind::kScatter);
    case OpKind::kAllToAll:
      return to_string(ExchangeKind::kAllToAll);
    case OpKind::kAllGatherv:
      return to_string(ExchangeKind::kAllGatherv);
    case OpKind::kAllToAllv:
      return to_string(ExchangeKind::kAllToAllv);
  }
  return "unknown";
}

OpKind op_kind(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::kGather:
      return OpKind::kGather;
    case ExchangeKind::kScatter:
      return OpKind::kScatter;
    case ExchangeKind::kAllToAll:
      return OpKind::kAllToAll;
    case ExchangeKind::kAllGatherv:
      return OpKind::kAllGatherv;
    case ExchangeKind::kAllToAllv:
      return OpKind::kAllToAllv;
  }
  return OpKind::kNone;
}

std::string describe(const OpHeader& header) {
  auto text = fmt::format("{} #{}", to_string(header.kind), header.sequence);
  if (header.kind == OpKind::kNone || header.kind == OpKind::kBarrier) return text;
  if (header.kind == OpKind::kAllocate) return fmt::format("{} ({} bytes)", text, header.count);
  text += fmt::format(" ({}", to_string(header.dtype));
  if (!is_uneven(header.kind)) text += fmt::format(", {} elements", header.count);
  if (reduces(header.kind)) text += fmt::format(", {}", to_string(header.op));
  if (has_root(header.kind)) text += fmt::format(", root {}", header.root);
  return text + ")";
}

std::optional<std::string> malformed(const OpHeader& header) {
  if (header.kind == OpKind::kNone || static_cast<int>(header.kind) >= kNumOpKinds) {
    return fmt::format("operation kind {}", static_cast<int>(header.kind));
  }
  if (static_cast<int>(header.dtype) >= kNumDTypes) {
    return fmt::format("dtype {}", static_cast<int>(header.dtype));
  }
  if (static_cast<int>(header.op) >= kNumReduceOps)
    return fmt::format("op {}", static_cast<int>(header.op));
  if (header.count < 0) return fmt::format("count {}", header.count);
  if (header.sequence == 0 || header.unused != 0) return "sequence or padding";
  return std::nullopt;
}

std::optional<std::string> mismatch(const OpHeader& a, std::string_view name_a, const OpHeader& b,
                                    std::string_view name_b) {
  if (a == b) return std::nullopt;
  return fmt::format("{} called {}, {} called {}", name_a, describe(a), name_b, describe(b));
}

std::string uneven(const OpHeader& header, std::string_view sender, int64_t sent,
                   std::string_view receiver, int64_t expected) {
  return fmt::format("{}: {} sends {} elements to {}, which expects {}", describe(header), sender,
                     sent, receiver, expected);
}

}  // namespace lockstep::inline internal
