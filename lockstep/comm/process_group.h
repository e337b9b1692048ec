#pragma once
// Collectives over bytes: the interface that the back ends implement and that the tensor layer
// wraps.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/types.h"
#include "lockstep/launch/world.h"

namespace lockstep {

class GroupCore;
class WorkState;

/// A collective that was started. Copies are cheap and share it. Dropping a Work does not cancel
/// it.
class Work {
 public:
  Work() = default;  ///< One that is done.
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}

  bool done() const;  ///< True when wait() would not block; it may still throw.
  /// Returns when the buffers hold the result. Throws what the collective failed with. Never blocks
  /// longer than the group's timeout.
  void wait();

 private:
  std::shared_ptr<WorkState> state_;
};

struct GroupOptions {
  std::string backend = "auto";  ///< A name of backends(), or "auto". A named one never falls back.
  std::chrono::milliseconds timeout = std::chrono::seconds(300);  ///< Bound of every collective.
};

struct CollectiveOptions {
  /// True: return at once, run in the group's thread. False: large operations still go there, but
  /// the call may run small ones in the caller's thread, which is faster when wait() follows at
  /// once.
  bool async = false;
  /// For ReduceOp::kPremulSum: what this rank's values are multiplied by before they are summed
  /// (ranks may give different ones), at the price of one more pass over them here. In all_reduce
  /// the product replaces the values even if the call fails.
  double factor = 1;
};

/// Memory that the peers on this host can read and write: collectives on it need no copy.
class SharedBuffer {
 public:
  virtual ~SharedBuffer() = default;
  virtual void* data() const = 0;
  virtual int64_t bytes() const = 0;
};

/// A fixed set of ranks that run collectives together. Copies are cheap and share the group.
///
/// All ranks issue the same collectives in the same order; breaking that is an error (kMismatch or
/// kTimeout), never a hang. One thread at a time per group. Buffers belong to the collective until
/// Work::wait() returns. `count` is in elements; every pointer may be any memory of this process.
///
/// Sums have one order: over ranks [lo, hi) it is sum[lo, mid) + sum[mid, hi) with mid = lo + the
/// largest power of two below hi - lo, for every size and transport, so results repeat bit for bit
/// and are equal on all ranks.
///
/// Errors of every collective: kInvalidArgument (bad count, root or op, or an op that
/// the dtype does not have, see can_reduce(); nothing was sent),
/// kMismatch (a rank called something else; names both sides), kTimeout (names the ranks that did
/// not come), kPeerLost (names the rank that died). After the last three the group is unusable:
/// every later call throws the same error; make a new group.
class ProcessGroup {
 public:
  /// Collective over all ranks of `world`. Errors: kTimeout naming the missing ranks, kMismatch,
  /// kInvalidArgument (unknown back end; names the nearest), kUnavailable (a named back end that
  /// cannot run here; says why).
  static ProcessGroup create(const World& world, const GroupOptions& options = {});

  int rank() const;
  int size() const;
  const std::string& backend() const;

  /// Rank in the world of a rank of this group, and back; -1 when that world rank is not in it.
  int world_rank(int group_rank) const;
  int group_rank(int world_rank) const;

  /// A new group of some of this group's ranks, in the order given (ranks of this group, no
  /// duplicates). Collective over the members only. Errors: kInvalidArgument.
  ProcessGroup subgroup(const std::vector<int>& ranks) const;

  /// Replaces `data` on every rank by the reduction over all ranks. Within a host every byte is
  /// read once per rank by its reducer and written once per rank; between hosts 2(H-1)/H of the
  /// bytes are sent per host.
  Work all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const CollectiveOptions& options = {});
  /// Replaces `data` on every rank by that of `root`.
  Work broadcast(void* data, int64_t count, DType dtype, int root,
                 const CollectiveOptions& options = {});
  /// in: count elements; out: size() * count, in rank order. `in` may be its own place in `out`.
  Work all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const CollectiveOptions& options = {});
  /// in: size() * count elements; out: count, the reduction of everyone's part rank().
  Work reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const CollectiveOptions& options = {});
  /// Point to point, always asynchronous. Sends from one rank to another with the same tag arrive
  /// in order; a recv takes the first that has its tag. Errors: kMismatch when count or dtype
  /// differ.
  Work send(const void* data, int64_t count, DType dtype, int destination, int tag = 0);
  Work recv(void* data, int64_t count, DType dtype, int source, int tag = 0);
  /// Returns when all ranks have entered.
  void barrier();

  /// Collective: every rank asks for the same size. 64-byte aligned, zeroed. Errors: kUnavailable
  /// (no memory). Memory larger than a page starts at 2 MiB. Keep it until the collectives on it
  /// are done; it may outlive the group.
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes);

 private:
  explicit ProcessGroup(std::shared_ptr<GroupCore> core) : core_(std::move(core)) {}
  std::shared_ptr<GroupCore> core_;
};

}  // namespace lockstep
