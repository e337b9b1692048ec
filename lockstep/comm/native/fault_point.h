#pragma once
// Where a test can end or stop a rank.

#include <atomic>

#include "lockstep/comm/op_header.h"

namespace lockstep {

/// In shared memory: kArriving (nobody knows of this rank yet), kEntered (its header is out),
/// kBarrier (before each barrier in mid-operation), kFinished. Between hosts, in each step of a
/// collective and in each send and recv: kExchanging (nothing sent or read yet), kSending (a peer
/// has got some of what it is to get, not all), kReceiving (some data of a peer has come),
/// kExchanged (all this rank has to send is with the kernel, all it waits for has come). Of a
/// letter that both ends copy, in shared memory: kSending and kReceiving, after each chunk that one
/// copies.
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

/// For tests: called, when set, at each of these points of each operation of each rank of this
/// process. `kind`: kNone for send and recv.
using FaultHook = void (*)(int world_rank, OpKind kind, FaultPoint point);
inline std::atomic<FaultHook> fault_hook = nullptr;

inline void reach(int world_rank, OpKind kind, FaultPoint point) {
  if (const auto hook = fault_hook.load(std::memory_order_relaxed)) hook(world_rank, kind, point);
}

}  // namespace lockstep
