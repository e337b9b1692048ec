#include "lockstep/comm/native/op_header.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

bool reduces(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter;
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
  }
  return "unknown";
}

std::string describe(const OpHeader& header) {
  const auto start = fmt::format("{} #{}", to_string(header.kind), header.sequence);
  switch (header.kind) {
    case OpKind::kNone:
    case OpKind::kBarrier:
      return start;
    case OpKind::kAllocate:
      return fmt::format("{} ({} bytes)", start, header.count);
    case OpKind::kBroadcast:
      return fmt::format("{} ({}, {} elements, root {})", start, to_string(header.dtype),
                         header.count, header.root);
    default:
      break;
  }
  const auto what =
      fmt::format("{} ({}, {} elements", start, to_string(header.dtype), header.count);
  return reduces(header.kind) ? fmt::format("{}, {})", what, to_string(header.op)) : what + ")";
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

}  // namespace lockstep
