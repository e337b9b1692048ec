#pragma once
// A ProcessGroup runs collectives over bytes. Back ends implement it, and collectives.h wraps it
// for tensors.
//
// Use:
//   auto group = lockstep::ProcessGroup::create(lockstep::World::join());
//   std::vector<float> sums(1000, 1.0f);
//   auto work = group.all_reduce(sums.data(), 1000, lockstep::DType::kFloat32,
//                                lockstep::ReduceOp::kSum, {.async = true});
//   work.wait();  // every element is group.size(), on every rank
//   group.barrier();

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/deadline.h"
#include "lockstep/types.h"
#include "lockstep/world.h"

namespace lockstep::inline internal {
class DeviceOrder;
class GroupCore;
class WorkState;
}  // namespace lockstep::inline internal

namespace lockstep {

/// A collective that was started. Copies are cheap and share it. Dropping a Work does not cancel
/// the collective. Threads: any, also several at a time, may call done() and wait().
class Work {
 public:
  Work() = default;  ///< A finished one.

  bool done() const;  ///< True when wait() would not block; it may still throw.
  /// Returns when the buffers hold the result. Throws the error of the collective. The wait for
  /// peers ends with the group's timeout. Then straggler detection takes at most a second if
  /// the store answers at once. Otherwise it takes some 10 s (at most 5 s per request).
  void wait();

  /// Returns the same Work, whose next successful wait() also runs `last`, in its caller's thread,
  /// before any wait() returns. If the collective ended within its call, `last` runs at once.
  /// Several run once each, in the order in which they were given. An exception comes out of
  /// wait(), and the next wait() goes on with the one that threw. Captures live until all have run;
  /// if the Work is dropped, until the collective is over. None may use the Work itself.
  Work then(std::function<void()> last) &&;

 private:
  friend class internal::GroupCore;
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}

  std::shared_ptr<WorkState> state_;
};

/// Whether sums must have the fixed order of ProcessGroup.
enum class Order {
  kFixed,
  kAny,  ///< May be faster; bits may differ from run to run, but not from rank to rank.
};

struct GroupOptions {
  /// "auto", "native", "mpi", "c10d:gloo", "c10d:nccl" or "hccl". A named back end never falls
  /// back. "auto" takes c10d:nccl or hccl for memory of device() where each rank has a device of
  /// its own, and native for the rest.
  std::string backend = "auto";
  /// With kAny, "auto" measures the back ends briefly and takes the fastest between hosts. Within a
  /// host it is native, the fastest by far.
  Order order = Order::kFixed;
  std::chrono::milliseconds timeout = std::chrono::seconds(300);  ///< Bound of every collective.
};

struct CollectiveOptions {
  /// True: return at once, run in the group's thread. False: the call may run small operations in
  /// the caller's thread, which is faster if wait() follows at once. Large ones still run in the
  /// group's thread.
  bool async = false;
  /// For ReduceOp::kPremulSum: the factor on this rank's values before the sum (it may differ
  /// between ranks), at the price of one more pass over them. In all_reduce the product replaces
  /// the values even if the call fails.
  double factor = 1;
  /// Whether the pointers are memory of ProcessGroup::device(), as lockstep/collectives.h passes
  /// it. The same on all ranks. Excludes a factor and coalesced operations. Without an `order`, no
  /// read or write of the memory may be pending, and the call has ended on the device when wait()
  /// returns.
  bool on_device = false;
  std::shared_ptr<DeviceOrder> order = {};  ///< Null: memory of the host, or see above.
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

/// Memory that peers on this host can read and write: collectives on it need no copy.
class SharedBuffer {
 public:
  virtual ~SharedBuffer() = default;
  virtual void* data() const = 0;
  virtual int64_t bytes() const = 0;
};

/// A fixed set of ranks that run collectives together. Copies are cheap and share the group.
///
/// All ranks issue the same collectives in the same order; a violation is an error (kMismatch or
/// kTimeout), never a hang. Buffers belong to the collective until Work::wait() returns. `count` is
/// in elements; pointers may be to any memory of this process.
///
/// Threads: one at a time per group. A collective during another thread's blocking call gets
/// kInvalidArgument, and the blocking call continues. send() and recv() may come from any thread,
/// also beside a collective. Threads may use different groups at the same time.
///
/// Cost: without `async` a call of at most 1 MiB runs in the caller's thread. Others are handed to
/// the group's thread, which takes some 20 us.
///
/// Sums of host memory by the native back end, which "auto" takes for it, have one order. Over
/// ranks [lo, hi) it is sum[lo, mid) + sum[mid, hi) with mid = lo + the largest power of two below
/// hi - lo. It is the same for every size and transport, so results repeat bit for bit. Sums of
/// other back ends, as of device() memory, have those back ends' order, which may differ from run
/// to run. All ranks get equal bits.
///
/// Errors of every collective: kInvalidArgument, and any of a group that failed before, come from
/// the call. New ones come from Work::wait(), or from a call without a Work.
///   kInvalidArgument  bad count, root or op, or an op that the dtype does not have (see
///                     can_reduce()); nothing was sent;
///   kMismatch         a rank called another collective or gave other counts; names both sides;
///   kTimeout          names the ranks that did not come;
///   kPeerLost         names the rank that died;
///   kCorrupt          bytes that are no frame; names the rank that sent them.
/// After the last four the group is unusable. Every later call throws the same error, alike on all
/// ranks, with the last operation of each rank. Make a new group. Each rank that notices the death
/// of a rank also ends all its other groups, because their ranks may wait for the dead one. The
/// cause stays the same ("in another group: ..."). Groups made later are good.
///
/// `site`, the last parameter of every operation, is its place of call, for the flight recorder.
/// Leave it out, except in a function that wraps an operation: pass on the site of its own caller.
class ProcessGroup {
 public:
  /// Collective over all ranks of `world`. Errors: kTimeout naming the missing ranks; kMismatch.
  /// kInvalidArgument: an unknown back end (naming the nearest), or one that cannot run here (with
  /// the reason). Also a World that has not joined this process's job, and a timeout that is not
  /// positive.
  static ProcessGroup create(const World& world, const GroupOptions& options = {});

  int rank() const;
  int size() const;
  const std::string& backend() const;
  /// The device of which this group's collectives use memory in place: "cuda:1"; empty: none.
  const std::string& device() const;

  /// Place of this rank among this group's ranks on its host, and their number.
  int local_rank() const;
  int local_size() const;
  /// The rank in the world of a rank of this group. Errors: kInvalidArgument for a rank outside
  /// [0, size()). The next one is the reverse: -1 for a rank that is not in this group.
  int world_rank(int group_rank) const;
  int group_rank(int world_rank) const;

  /// A new group of some of this group's ranks, in the order given (ranks of this group, no
  /// duplicates). Collective over the members only. Errors: kInvalidArgument.
  ProcessGroup subgroup(const std::vector<int>& ranks) const;
  /// Makes one new group per color from the ranks that gave it, ordered by key, then by rank in
  /// this group. With kNoColor (any negative one) this rank joins none. Collective over all ranks
  /// of this group; other collectives may be under way. An error that ends this group ends the
  /// split too, even while a rank waits only for members of the new group. Cost: one all_gather,
  /// and that of making a group. As MPI_Comm_split.
  static constexpr int kNoColor = -1;
  std::optional<ProcessGroup> split(int color, int key = 0, CallSite site = CallSite::here()) const;

  /// Ends this rank's part in the group: waits for the operations started here, then frees threads,
  /// connections and shared memory. Buffers of allocate() stay with their owners. Copies of the
  /// group then support only rank(), size() and the like; other calls throw kInvalidArgument. Not
  /// collective: ranks that still use the group get kPeerLost naming this rank. A second call has
  /// no effect. Dropping the last copy does the same. No other thread may be in a call of the
  /// group.
  void destroy();

  /// Replaces `data` on every rank by the reduction over all ranks. Within a host, a reducer reads
  /// every byte of each rank once, and each rank's memory is written once. Between hosts each of H
  /// hosts sends 2(H-1)/H of the bytes.
  Work all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                  const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// Replaces `data` on every rank by root's.
  Work broadcast(void* data, int64_t count, DType dtype, int root,
                 const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// in: count elements; out: size() * count, in rank order. `in` may be this rank's place in
  /// `out`.
  Work all_gather(const void* in, void* out, int64_t count, DType dtype,
                  const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// in: size() * count elements; out: count, the reduction of all ranks' part rank().
  Work reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                      const CollectiveOptions& options = {}, CallSite site = CallSite::here());
  /// Replaces root's `data` by the reduction over all ranks; the others' stays. Within a host as
  /// all_reduce, but written once. Every other host sends its bytes once, to root's host.
  Work reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
              const CollectiveOptions& options = {}, CallSite site = CallSite::here());

  // The next five only move data. Within a host a small block (16 KiB per rank in all) costs two
  // barriers. A large block is read in place if all inputs are memory of one allocate(), else
  // copied once in between. Between hosts each block goes straight from rank to rank. Every byte is
  // sent once, or, by all_gatherv, once to each rank on other hosts. `in` and `out` must not
  // overlap, except that a rank's own block may lie at its place in the larger of the two.

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
  /// send_counts[r] elements of `in` go to rank r. receive_counts[r] elements of `out` come from
  /// rank r; its send_counts[rank()] is the same number. Both lie in rank order.
  Work all_to_allv(const void* in, std::span<const int64_t> send_counts, void* out,
                   std::span<const int64_t> receive_counts, DType dtype,
                   const CollectiveOptions& options = {}, CallSite site = CallSite::here());

  /// all_reduce of each buffer, in one call. The number of buffers and their counts are the same on
  /// every rank (kMismatch names a rank with others). The results are those of separate
  /// all_reduces. Neighbouring buffers below 64 KiB travel in packs of up to 1 MiB, at the price of
  /// a copy in and out. Larger ones are reduced in place. Costs one additional 24-byte all_gather.
  /// Buffers must not overlap: give a weight that layers share once, or its size decides how often
  /// it is summed.
  Work all_reduce_coalesced(std::span<const Buffer> buffers, DType dtype, ReduceOp op,
                            const CollectiveOptions& options = {},
                            CallSite site = CallSite::here());
  /// all_gather or reduce_scatter of each pair, in one call, as all_reduce_coalesced. The limits of
  /// 64 KiB and 1 MiB apply to the larger buffer of a pair.
  Work all_gather_coalesced(std::span<const BufferPair> pairs, DType dtype,
                            const CollectiveOptions& options = {},
                            CallSite site = CallSite::here());
  Work reduce_scatter_coalesced(std::span<const BufferPair> pairs, DType dtype, ReduceOp op,
                                const CollectiveOptions& options = {},
                                CallSite site = CallSite::here());

  /// Point to point, always asynchronous. Each message goes to the first recv with its tag;
  /// messages with the same tag arrive in order. A message that arrives before its recv is kept, up
  /// to 256 MiB from each rank. A small message is sent when send() returns. A large one is sent
  /// when the receiver, during any recv, accepts it.
  ///
  /// Errors: kMismatch (count or dtype differ; no room for messages without a recv), which ends the
  /// group. A kTimeout before any byte of a message was sent ends that message alone (with engines
  /// other than native: the group). The recv has then taken nothing, and a late message goes to the
  /// next recv of its tag. If the peer itself waits for another rank, the error first names the
  /// rank at the end of that chain.
  Work send(const void* data, int64_t count, DType dtype, int destination, int tag = 0,
            CallSite site = CallSite::here());
  Work recv(void* data, int64_t count, DType dtype, int source, int tag = 0,
            CallSite site = CallSite::here());
  /// Returns when all ranks have entered.
  void barrier(CallSite site = CallSite::here());

  /// Collective: every rank requests the same size. 64-byte aligned, zeroed. Errors: kUnavailable
  /// (no memory), kInvalidArgument (negative). Memory larger than a page starts at a multiple of 2
  /// MiB. Keep it until the collectives on it are done; it may outlive the group.
  std::shared_ptr<SharedBuffer> allocate(int64_t bytes, CallSite site = CallSite::here());

 private:
  explicit ProcessGroup(std::shared_ptr<GroupCore> core) : core_(std::move(core)) {}
  std::shared_ptr<GroupCore> core_;
};

}  // namespace lockstep
