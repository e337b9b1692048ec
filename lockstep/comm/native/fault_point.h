#pragma once
// Where a rank can be struck by a test.

#include <atomic>

#include "lockstep/comm/op_header.h"

namespace lockstep {

/// In shared memory: kArriving (nobody knows of this rank yet), kEntered (its header is out),
/// kMeeting (before each meeting in mid-operation), kFinished. Between hosts, in each step of a
/// collective and in each send and recv: kExchanging (nothing sent or read yet), kSending (a peer
/// has got some of what it is to get, not all), kReceiving (some data of a peer has come),
/// kExchanged (all this rank has to send is with the kernel, all it waits for has come). Of a
/// letter that both ends copy, in shared memory: kSending and kReceiving, after each chunk that one
/// copies.
enum class FaultPoint {
  kArriving,
  kEntered,
  kMeeting,
  kFinished,
  kExchanging,
  kSending,
  kReceiving,
  kExchanged
};

/// For tests: called, when set, at each phase of each operation of each rank of this process.
/// `kind`: kNone for send and recv.
using PhaseHook = void (*)(int world_rank, OpKind kind, FaultPoint phase);
inline std::atomic<PhaseHook> phase_hook = nullptr;

inline void reach(int world_rank, OpKind kind, FaultPoint phase) {
  if (const auto hook = phase_hook.load(std::memory_order_relaxed)) hook(world_rank, kind, phase);
}

}  // namespace lockstep
