#pragma once
// Collectives over bytes: the interface that the back ends implement and that the tensor layer
// wraps.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/call_site.h"
#include "lockstep/types.h"
#include "lockstep/world.h"

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
  /// Returns when the buffers hold the result. Throws what the collective failed with. The wait for
  /// peers ends with the group's timeout; what then finds the culprit ends within a second where
  /// the store answers at once, and, where it does not, within some 10 s (each question to it has a
  /// limit of at most 5 s).
  void wait();

  /// The same Work, whose first wait() that does not fail also runs `last`, in its caller's thread,
  /// before any wait() returns. At once when the collective is done already. What `last` holds is
  /// kept until the collective is over, also where the Work is dropped.
  Work then(std::function<void()> last) &&;

 private:
  std::shared_ptr<WorkState> state_;
};

/// Whether sums must have the one order that ProcessGroup promises.
enum class Order {
  kFixed,
  kAny,  ///< May be faster; bits may differ from run to run, though not from rank to rank.
};

struct GroupOptions {
  /// "auto", "native", "mpi", "c10d:gloo" or "c10d:nccl". A named one never falls back.
  std::string backend = "auto";
  /// With kAny, "auto" takes between hosts what a short measurement finds fastest. Within a host it
  /// is native, the fastest by far.
  Order order = Order::kFixed;
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
  /// The pointers are memory of ProcessGroup::device(), on which nothing is left to do that writes
  /// to it or reads it: what lockstep/collectives.h passes on. The same on all ranks. Not
  /// with a factor, and not coalesced.
  bool on_device = false;
};

/// One of the buffers of a coalesced all_reduce.
struct Buffer {
  void* data = nullptr;
  int64_t count = 0;  ///< Elements.
};

/// One of the pairs of buffers of a coalesced all_gather or reduce_scatter.
struct BufferPair {
  const void* in = nullptr;
  void* out = nullptr;
  int64_t count = 0;  ///< Elements of the smaller of the two; the other has size() times as many.
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
/// kTimeout), never a hang. One thread at a time per group; a thread that calls while another is in
/// a blocking call gets kInvalidArgument, and that call goes on. Buffers belong to the collective
/// until Work::wait() returns. `count` is in elements; every pointer may be any memory of this
/// process.
///
/// Sums have one order, unless GroupOptions name another back end than native: over ranks [lo, hi)
/// it is sum[lo, mid) + sum[mid, hi) with mid = lo + the largest power of two below hi - lo, for
/// every size and transport, so results repeat bit for bit and are equal on all ranks.
///
/// Errors of every collective: kInvalidArgument (bad count, root or op, or an op that
/// the dtype does not have, see can_reduce(); nothing was sent),
/// kMismatch (a rank called something else or with other counts; names both sides), kTimeout (names
/// the ranks that did not come), kPeerLost (names the rank that died), kCorrupt (bytes that are no
/// message; names the rank they came from). After the last four the group is unusable: every later
/// call throws the same error, alike on all ranks, with what each did last; make a new group.
/// kPeerLost of a rank that died also ends every other group that the rank which meets it has by
/// then, with the same cause ("in another group: ..."): ranks of those may wait for it. Groups made
/// later are good.
///
/// `site`, the last parameter of every operation, is where it is called, for the flight recorder.
/// Leave it out, but for a function that wraps an operation: it passes its own caller's on.
class ProcessGroup {
 public:
  /// Collective over all ranks of `world`. Errors: kTimeout naming the missing ranks, kMismatch,
  /// kInvalidArgument (an unknown back end: names the nearest; one that cannot run here: says why;
  /// a World that has not joined the job that this process is a rank of).
  static ProcessGroup create(const World& world, const GroupOptions& options = {});

  int rank() const;
  int size() const;
  const std::string& backend() const;
  /// The device whose memory this group's collectives take where it lies: "cuda:1"; empty: none.
  const std::string& device() const;

  /// Place and number of this group's ranks on this rank's host.
  int local_rank() const;
  int local_size() const;
  /// Rank in the world of a rank of this group, and back; -1 when that world rank is not in it.
  int world_rank(int group_rank) const;
  int group_rank(int world_rank) const;

  /// A new group of some of this group's ranks, in the order given (ranks of this group, no
  /// duplicates). Collective over the members only. Errors: kInvalidArgument.
  ProcessGroup subgroup(const std::vector<int>& ranks) const;
  /// One new group for each color that is given, of the ranks that gave it, in the order of their
  /// keys, equal keys in that of their ranks here; kNoColor (any negative one): nothing, this rank
  /// is in none of them. Collective over all ranks of this group; other collectives may be under
  /// way. What ends this group meanwhile ends the split, also where a rank waits for members of the
  /// new group only. Cost: one all_gather, and what making a group costs. As MPI_Comm_split.
  static constexpr int kNoColor = -1;
  std::optional<ProcessGroup> split(int color, int key = 0, CallSite site = CallSite::here()) const;

  /// Ends this rank's part in the group: waits for what was started here, then gives threads,
  /// connections and shared memory back (buffers of allocate() stay with their owners). Every copy
  /// of the group is then good for rank(), size() and the like only; other calls throw
  /// kInvalidArgument. Not collective: ranks that still use the group get kPeerLost naming this
  /// one. Again: nothing. Dropping the last copy does the same.
  void destroy();

  /// Replaces `data` on every rank by the reduction over all ranks. Within a host every byte is
  /// read once per rank by its reducer and written once per rank; between hosts 2(H-1)/H of the
  /// bytes are sent per host.
  Work all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// Replaces `data` on every rank by that of `root`.
  Work broadcast(void* data, int64_t count, DType dtype, int root,
                 const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// in: count elements; out: size() * count, in rank order. `in` may be its own place in `out`.
  Work all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// in: size() * count elements; out: count, the reduction of everyone's part rank().
  Work reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// Replaces root's `data` by the reduction over all ranks; that of the others stays as it is.
  /// Within a host as all_reduce, but written once; every other host sends its bytes once, to
  /// root's host.
  Work reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const CollectiveOptions& options = {}, CallSite site = CallSite::here());

  // The next five only move data. Within a host a small piece (16 KiB a rank in all) costs two
  // barriers; a large one is read from where it lies when all inputs are memory of one allocate(),
  // else copied once in between. Between hosts each piece goes straight from rank to rank: every
  // byte is sent once, or, by all_gatherv, once to each rank on other hosts. `in` and `out` must
  // not overlap, but for a rank's own piece, which may lie at its place in the larger of the two.

  /// in: count elements; out, on root only: size() * count, in rank order.
  Work gather(const void* in, void* out, int64_t count, DType dtype, int root,
              const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// in, on root only: size() * count elements, one part a rank; out: count, this rank's part.
  Work scatter(const void* in, void* out, int64_t count, DType dtype, int root,
               const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// in: size() * count elements, part r for rank r; out: size() * count, part r from rank r.
  Work all_to_all(const void* in, void* out, int64_t count, DType dtype,
                  const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// Ranks give different counts: counts[r] elements of rank r, the same list on every rank. in:
  /// counts[rank()]; out: all of them, in rank order.
  Work all_gatherv(const void* in, void* out, std::span<const int64_t> counts, DType dtype,
                   const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// send_counts[r] elements of `in` go to rank r, receive_counts[r] of `out` come from it (what
  /// rank r gives as its send_counts[rank()]); both lie in rank order.
  Work all_to_allv(const void* in, std::span<const int64_t> send_counts, void* out,
                   std::span<const int64_t> receive_counts, DType dtype,
                   const CollectiveOptions& options = {}, CallSite site = CallSite::here());

  /// all_reduce of each buffer, in one call: the same number of buffers with the same counts on
  /// every rank (kMismatch names a rank that has others). The results are those of as many
  /// all_reduces; neighbours below 64 KiB travel together, in packs of up to 1 MiB, at the price of
  /// a copy in and out; larger ones are reduced where they lie. Costs one 24-byte all_gather more.
  Work all_reduce_coalesced(std::span<const Buffer> buffers, DType dtype, ReduceOp op,
                            const CollectiveOptions& options = {},
                            CallSite site = CallSite::here());
  /// all_gather of each pair, and reduce_scatter of each, in one call; as all_reduce_coalesced,
  /// where 64 KiB and 1 MiB are those of the larger buffers.
  Work all_gather_coalesced(std::span<const BufferPair> pairs, DType dtype,
                            const CollectiveOptions& options = {},
                            CallSite site = CallSite::here());
  Work reduce_scatter_coalesced(std::span<const BufferPair> pairs, DType dtype, ReduceOp op,
                                const CollectiveOptions& options = {},
                                CallSite site = CallSite::here());

  /// Point to point, always asynchronous. Each letter goes to the first recv with its tag, whatever
  /// the order of tags; those with the same tag arrive in order. One that comes before its recv is
  /// kept, up to 256 MiB from each rank. A small letter is sent when send() returns; a large one
  /// when the receiver, which has any recv under way, takes it.
  ///
  /// Errors: kMismatch (count or dtype differ; no room for letters that nobody asks for), which
  /// ends the group. kTimeout of a letter of which nothing was on its way ends that letter alone
  /// (with engines other than native: the group): a recv has taken nothing, and what comes late is
  /// for the next recv of its tag. Where the peer itself waits for another rank, that one is named
  /// first, to which the waits lead.
  Work send(const void* data, int64_t count, DType dtype, int destination, int tag = 0,
            CallSite site = CallSite::here());
  Work recv(void* data, int64_t count, DType dtype, int source, int tag = 0,
            CallSite site = CallSite::here());
  /// Returns when all ranks have entered.
  void barrier(CallSite site = CallSite::here());

  /// Collective: every rank asks for the same size. 64-byte aligned, zeroed. Errors: kUnavailable
  /// (no memory). Memory larger than a page starts at 2 MiB. Keep it until the collectives on it
  /// are done; it may outlive the group.
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, CallSite site = CallSite::here());

 private:
  explicit ProcessGroup(std::shared_ptr<GroupCore> core) : core_(std::move(core)) {}
  std::shared_ptr<GroupCore> core_;
};

}  // namespace lockstep
