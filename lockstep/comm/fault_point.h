#pragma once
// Points at which a test can end or stop a rank.

#include <atomic>

#include "lockstep/comm/op_header.h"

namespace lockstep::inline internal {

/// In shared memory: kArriving (no rank knows of this rank yet), kEntered (its header is written),
/// kBarrier (before each barrier in mid-operation), kFinished. Between hosts, in each step of a
/// collective and in each send and recv: kExchanging (nothing sent or read yet), kSending (a peer
/// has got a part of its data), kReceiving (a part of a peer's data has come). kExchanged: the
/// kernel has all data to send, and all awaited data has come. For a message that both ends copy,
/// in shared memory: kSending and kReceiving, after each chunk copied by one end.
enum class FaultPoint {
  kArriving,
  kEntered,
  kBarrier,
  kFinished,
  kExchanging,
  kSending,
  kReceiving,
  kExchanged
};

/// For tests: if set, called at each of these points of each operation of each rank of this
/// process. `kind`: kNone for send and recv.
using FaultHook = void (*)(int world_rank, OpKind kind, FaultPoint point);
inline std::atomic<FaultHook> fault_hook = nullptr;

inline void reach(int world_rank, OpKind kind, FaultPoint point) {
  if (const auto hook = fault_hook.load(std::memory_order_relaxed)) hook(world_rank, kind, point);
}

}  // namespace lockstep::inline internal
