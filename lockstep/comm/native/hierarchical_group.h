#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/mutex.h"
#include "lockstep/comm/native/hierarchical_plan.h"
#include "lockstep/comm/native/hierarchical_step.h"
#include "lockstep/comm/native/host_ranks.h"
#include "lockstep/comm/native/straggler_detection.h"
#include "lockstep/comm/native/tcp/links.h"
#include "lockstep/comm/native/tcp/peers.h"
#include "lockstep/comm/native/tcp/pipes.h"
#include "lockstep/comm/native/tcp/schedule.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// The native back end over several hosts: shared memory within a host, TCP between hosts. Sums are
/// in hierarchical_sums.cpp, the other collectives in hierarchical_ops.cpp and
/// hierarchical_exchange.cpp, the rest in hierarchical_group.cpp.
class HierarchicalGroup : public GroupImpl {
 public:
  HierarchicalGroup(const GroupSpec& spec, const HierarchicalPlan& plan,
                    std::unique_ptr<ShmGroup> shm, std::unique_ptr<tcp::Peers> for_links,
                    std::unique_ptr<tcp::Peers> for_pipes);
  ~HierarchicalGroup() override;

  void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const Waiting& waiting) override;
  void broadcast(void* data, int64_t count, DType dtype, int root, const Waiting& waiting) override;
  void all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const Waiting& waiting) override;
  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const Waiting& waiting) override;
  void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const Waiting& waiting) override;
  void exchange(const Exchange& exchange, const void* in, void* out,
                const Waiting& waiting) override;
  void barrier(const Waiting& waiting) override;
  bool try_send(const void* data, const MessageHeader& message, int destination,
                CallSite site) override;
  bool send(const void* data, const MessageHeader& message, int destination,
            const Waiting& waiting) override;
  bool receive(int source, MessageSink& sink, const Waiting& waiting) override;
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) override;
  void give_up(const Error& error, Deadline deadline) noexcept override;

 private:
  /// One call of a collective.
  struct Call {
    OpHeader header;
    const Waiting& waiting;
    tcp::Choice choice;
    Numbering numbering;
    StepContext context;
    std::vector<std::byte*> bases;  // every local rank's data, when all can be reached
    bool staged() const { return bases.empty(); }
    int64_t element_bytes() const { return size_of(header.dtype); }
  };
  struct Flow;
  using Bases = std::vector<std::byte*>;

  OpHeader next_header(OpKind kind, int64_t count, DType dtype, ReduceOp op, int root);
  Call begin(const OpHeader& header, const void* data, int64_t bytes, int64_t result_bytes,
             const Waiting& waiting);
  void end(const Call& call);
  /// For carriers: makes the connections with their fellows, all in the same call.
  void link(const OpHeader& header, Deadline deadline);
  void run(Call& call, HierarchicalStep& step);
  std::chrono::microseconds spin_of(const Waiting& waiting) const {
    return waiting.spin ? spin_ : std::chrono::microseconds(0);
  }
  /// How an all_reduce of `bytes` runs in pairs.
  tcp::Pairs pairs_of(int64_t bytes) const;
  void run_pairs(Call& call, const Bases& ins, const Bases& outs, int64_t count);
  bool carries(const Call& call) const;
  Span slice_of(const Call& call, int64_t count) const;

  bool all_hosts_succeeded(const OpHeader& header, bool here, const Waiting& waiting);
  void do_all_reduce(Call& call, std::byte* data, int64_t count);
  void exchange_all_reduce(Call& call, const Flow& flow, int64_t exchange);
  void add_all_reduce_gather(Call& call, HierarchicalStep& step, const Bases& ins,
                             const Bases& outs, int64_t count);
  void add_spread(Call& call, HierarchicalStep& step, const Bases& outs, int64_t count, int except,
                  int64_t sums);
  void do_broadcast(Call& call, std::byte* data, int64_t count, int root);
  void add_scatter(Call& call, HierarchicalStep& step, std::byte* from, const Bases& outs,
                   int64_t count, int root_host);
  void do_reduce(Call& call, std::byte* data, int64_t count, int root);
  void exchange_with_others(const Exchange& exchange, const OpHeader& header, const std::byte* in,
                            std::byte* out, const Waiting& waiting);
  void link_for(std::span<const tcp::Outbound> outs, std::span<const tcp::Inbound> ins,
                const OpHeader& header, Deadline deadline);
  void do_all_gather(Call& call, const std::byte* in, std::byte* out, int64_t count);
  void do_reduce_scatter(Call& call, const std::byte* in, std::byte* out, int64_t count);

  enum class Kind { kCollective, kPointToPoint };
  /// Runs `body`; turns its error into the group's error.
  template <class Body>
  void guarded(Body body, Kind kind = Kind::kCollective) {
    try {
      body();
    } catch (const Error& error) {
      throw_agreed(error, kind);
    } catch (const std::exception& error) {  // as no memory: other hosts must learn of it
      throw_agreed(Error(ErrorCode::kInternal, error.what()), kind);
    }
  }
  [[noreturn]] void throw_agreed(const Error& error, Kind kind);
  void end_with(const Error& group_error) LOCKSTEP_REQUIRES(mutex_);
  Error agreed_error(const Error& error, Kind kind);
  std::optional<Error> told_of_left(const Error& error) const;
  std::vector<int> awaited();
  int local_of(int rank) const;
  bool is_here(int rank) const {
    return plan_.topology.host_of[static_cast<size_t>(rank)] == plan_.host;
  }

  const GroupSpec spec_;
  const HierarchicalPlan plan_;
  const TreeSum own_piece_sum_;
  StragglerDetection detection_;
  HostRanks local_;
  const std::vector<int> fellows_;  // carriers of this rank's slice on the other hosts
  const std::unique_ptr<tcp::Peers> for_links_;
  const std::unique_ptr<tcp::Peers> for_pipes_;
  tcp::Links links_;
  bool is_linked_ = false;  // with all fellows
  tcp::Pipes pipes_;
  Scratch scratch_;
  uint64_t sequence_ = 0;
  std::chrono::microseconds spin_{};
  std::atomic<bool> finds_group_error_ = false;  // a thread does so, or has done so
  Mutex mutex_;
  std::optional<Error> group_error_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// Collective over the members, on at least two hosts. Hosts with one rank have no shared part, so
/// this is the flat TCP transport as well. Sums follow the tree of reduce_tree.h for every layout.
/// Schedules and bytes: tcp/schedule.h; connections: tcp/peers.h.
///
/// Making it opens no connection; it returns when the store shows that all members have come. A
/// carrier connects with its fellows, which carry the same slice on other hosts, in its first
/// collective with data to carry. That collective waits for all fellows, by its own deadline, and
/// takes two more round trips per fellow. So it does not end before all fellows have entered it,
/// although later ones would, as a broadcast at its root. Without connections a rank has no
/// descriptor for the group; then it has one per peer, and one to wait with.
///
/// Failure: the first rank that meets an error writes it into the store as the group's error. It
/// then ends its connections and its host's shared group. Ranks woken by that read the group error.
/// So every rank throws the same text, which names the culprit and not the neighbour that gave up.
/// If the store is gone as well, each rank reports its own error. A collective that times out names
/// the ranks that did not wait in it. Each waiting rank records its wait in the store at its
/// timeout: a rank which only waited for the late one is not blamed. If all ranks waited, it names
/// the ranks between which no data passes.
///
/// Errors: kTimeout, kMismatch, kInvalidArgument (no secret between hosts); see also ShmGroup.
std::unique_ptr<GroupImpl> make_hierarchical_group(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep::inline internal
