#pragma once
// One round of an operation between hosts, for one rank: its sends, receives and sums.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/comm/native/hierarchical_plan.h"
#include "lockstep/comm/native/tcp/links.h"
#include "lockstep/comm/op_header.h"
#include "lockstep/comm/spans.h"

namespace lockstep::inline internal {

/// Memory for partial sums, kept from call to call.
class Scratch {
 public:
  void reset();
  /// 64-byte aligned, not initialised, valid until reset().
  std::byte* take(int64_t bytes);

 private:
  struct Block {
    std::unique_ptr<std::byte[]> data;
    int64_t bytes = 0;
  };
  std::vector<Block> blocks_;
  size_t block_ = 0;
  int64_t used_ = 0;
};

/// Data that stays the same over the operation.
struct StepContext {
  const HierarchicalPlan& plan;
  const TreeSum& sum;  ///< Over this host's ranks and other hosts' nodes: see own_piece_nodes().
  tcp::Links& links;
  Scratch& scratch;
  OpHeader operation;
  int slice = 0;  ///< The slice that this rank carries.
  int64_t element_bytes() const { return size_of(operation.dtype); }
};

/// The values from which a host sums its own piece: each of its ranks, and the nodes of the other
/// hosts.
std::vector<RankRange> own_piece_nodes(const HierarchicalPlan& plan);

/// Numbers the frames on each link over one operation, so that both ends agree on each frame.
class Numbering {
 public:
  explicit Numbering(int size) : out_(static_cast<size_t>(size)), in_(static_cast<size_t>(size)) {}
  uint32_t next_out(int peer) { return out_[static_cast<size_t>(peer)]++; }
  uint32_t next_in(int peer) { return in_[static_cast<size_t>(peer)]++; }

 private:
  std::vector<uint32_t> out_;
  std::vector<uint32_t> in_;
};

/// Collects the frames of one or more rounds, then runs them in one exchange. Spans are in
/// elements of the round; `bases` point to element 0 of the round.
///
/// Rounds follow one another without a pause. Two sets of memory receive other hosts' data in turn:
/// a set is filled again once its contents are summed. Free of deadlock: sums of round k depend
/// only on frames queued behind sums of earlier rounds.
class HierarchicalStep {
 public:
  HierarchicalStep(StepContext& context, Numbering& numbering);

  /// Sends the elements at `base`, unchanged, to the carrier on `host`, after `sums` calls of
  /// reduce_nodes() are complete.
  void send(int host, const std::byte* base, Span span, int64_t sums = 0);
  /// Receives them into each of `bases`.
  void receive(int host, std::span<std::byte* const> bases, Span span);

  /// Sends the sums of this host's nodes to `host`; each is computed just before it is sent. `ins`
  /// by local rank.
  void send_nodes(int host, std::span<std::byte* const> ins, Span span);
  /// Receives the other hosts' nodes and puts the sum over all ranks into each of `outs`. It sums
  /// as data arrives; with `at_end`, only after everything is sent (if `outs` is being sent).
  void reduce_nodes(std::span<std::byte* const> ins, std::span<std::byte* const> outs, Span span,
                    bool at_end);

  void run(Deadline deadline, std::chrono::microseconds spin);

 private:
  class Reducer;
  static constexpr size_t kSets = 2;
  /// Memory for values of one round, by order of use.
  using Set = std::vector<std::byte*>;

  void send_partial(int host, size_t place, std::vector<const void*> leaves, int64_t count);
  std::byte* memory(Set& set, size_t place, int64_t bytes);
  int64_t bytes_of(Span span) const { return span.size() * context_.element_bytes(); }
  void add_receive(int host, std::byte* to, int64_t bytes, std::function<void(int64_t)> arrived,
                   tcp::Gate gate);
  tcp::Frame frame(uint32_t part, int64_t bytes) const;

  StepContext& context_;
  Numbering& numbering_;
  std::vector<tcp::Outbound> out_;
  std::vector<tcp::Inbound> in_;
  std::vector<std::shared_ptr<Reducer>> at_end_;
  std::array<Set, kSets> received_;  // by source; those of the k-th sum in received_[k % kSets]
  std::vector<Set> partials_;        // by host and node
  int64_t sums_begun_ = 0;
  int64_t sums_done_ = 0;
};

/// The same pointers, each advanced by `bytes`.
inline std::vector<std::byte*> shifted(std::vector<std::byte*> bases, int64_t bytes) {
  if (bytes != 0) {
    for (auto& base : bases) base += bytes;
  }
  return bases;
}

}  // namespace lockstep::inline internal
