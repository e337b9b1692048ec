#pragma once
// An all_reduce of few bytes between hosts whose number is a power of two: log2(H) exchanges in
// pairs.
//
// In level k a host exchanges with the host whose number differs in bit k. The two then hold
// neighbouring nodes of the tree, so their sum is the node above. This keeps the fixed order, with
// log2(H) frames per host instead of H - 1. A frame of few bytes costs its sender some 4 us of
// a core (the kernel's way to the device), which exceeds its wire time.
//
//   whole   every level carries the whole: n log2(H) bytes sent per host
//   halves  a level carries half of what is left, and then all levels backwards spread the sums
//           (recursive halving and doubling): 2 n(H-1)/H, the least possible, in 2 log2(H) frames

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/comm/native/hierarchical_step.h"
#include "lockstep/comm/native/tcp/schedule.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {

/// One operation; for one use. The plan must have `pairs`.
class RecursiveDoubling {
 public:
  RecursiveDoubling(StepContext& context, Numbering& numbering)
      : context_(context), numbering_(numbering) {
    context_.scratch.reset();
  }

  /// Puts the sum over all ranks of the elements `span` of `ins` (by local rank) into each of
  /// `outs`. Bases point to element 0; an output may be an input. Runs at once, in one exchange.
  /// Errors: those of Links::exchange().
  void run(std::span<std::byte* const> ins, std::span<std::byte* const> outs, Span span,
           tcp::Pairs pairs, Deadline deadline, std::chrono::microseconds spin);

 private:
  using Outs = std::vector<void*>;

  /// A level's addition.
  struct Sum {
    const void* lower;
    const void* upper;
    Outs outs;
    int64_t count;
    ReduceOp op;
  };
  void run(const Sum& sum) const;

  const std::byte* own_value(std::span<std::byte* const> ins, Span span);
  void add_exchange(int level, const std::byte* from, Span sent, std::byte* to, Span received,
                    std::function<void()> then);
  void add_spread(std::span<std::byte* const> outs, const std::vector<Span>& held);
  bool is_upper(int level) const { return (context_.plan.host >> level & 1) != 0; }
  int64_t bytes_of(Span span) const { return span.size() * context_.element_bytes(); }

  StepContext& context_;
  Numbering& numbering_;
  std::vector<tcp::Outbound> out_;
  std::vector<tcp::Inbound> in_;
  int64_t added_ = 0;  // exchanges with a partner, one after the other
  int64_t done_ = 0;   // of them
};

}  // namespace lockstep::inline internal
