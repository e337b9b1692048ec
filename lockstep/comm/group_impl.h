#pragma once
// What a back end implements: blocking collectives over pointer, count, dtype and op.
//
// ProcessGroup does the rest once for all back ends: it checks arguments, runs asynchronous calls
// in threads, remembers the first fatal error and repeats it.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/call_site.h"
#include "lockstep/comm/exchange.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/comm/types.h"
#include "lockstep/store/store.h"

namespace lockstep {

/// How a call may wait, and for whom.
struct Waiting {
  Deadline deadline;
  /// True: somebody sits and waits for the result, so a short spin is worth it. False: the
  /// caller's threads compute meanwhile and need the core; sleep at once.
  bool spin = true;
  CallSite site = {};      ///< Where the program made the call.
  bool on_device = false;  ///< CollectiveOptions::on_device; only where GroupImpl has a device().
};

/// One group as a back end sees it. Equal on all members but for `rank`.
struct GroupSpec {
  int rank = 0;
  int size = 1;
  std::string name;                   ///< Unique in the job; begins this group's keys in the store.
  std::vector<int> world_ranks;       ///< By rank. Messages name world ranks: see rank_name().
  std::vector<std::string> host_ids;  ///< By rank: World::host_id.
  std::vector<std::string> addresses;  ///< By rank: World::address.
  /// By rank: its flight recorder, to read; also when it is dead. Null where it cannot be read from
  /// here, as on other hosts. May be left empty.
  std::vector<std::shared_ptr<const UniqueFd>> recorders;
  /// By rank: the accelerator that the rank computes with, "cuda:1 GPU-f81d4fae", its name in its
  /// process and one that no other device has; empty: none. May be left empty.
  std::vector<std::string> devices;
  std::string secret;  ///< World::secret.
  std::shared_ptr<Store> store;
  std::chrono::milliseconds timeout{};  ///< GroupOptions::timeout, for calls without a deadline.

  /// "rank 3", in the world's numbering.
  std::string rank_name(int group_rank) const;
  /// The same for several: "rank 1" or "ranks 1, 4-6".
  std::string rank_names(const std::vector<int>& group_ranks) const;
  /// The spec of the group of `ranks` (this group's numbering; this rank is among them), with
  /// `suffix` added to the name.
  GroupSpec subset(const std::vector<int>& ranks, const std::string& suffix) const;
  /// Has every rank an accelerator that no other rank has? If not, `why_not` says who. The same on
  /// all ranks.
  bool has_a_device_each(std::string* why_not) const;
};

/// The parties to a back end: one object a rank.
///
/// Arguments have been checked: counts not negative, ranks in range (send and recv: not one's own),
/// pointers not null where count > 0. One thread at a time calls the collectives and allocate().
/// send() and recv() may run meanwhile in other threads, one a peer and direction.
///
/// Errors are thrown as ProcessGroup documents; kMismatch, kTimeout and kPeerLost end the group,
/// the object then sees no further call but its destructor.
class GroupImpl {
 public:
  virtual ~GroupImpl() = default;

  /// See ProcessGroup::device().
  virtual std::string device() const { return ""; }

  virtual void all_reduce(void* data, int64_t count, DType dtype, ReduceOp op,
                          const Waiting& waiting) = 0;
  virtual void broadcast(void* data, int64_t count, DType dtype, int root,
                         const Waiting& waiting) = 0;
  virtual void all_gather(const void* in, void* out, int64_t count, DType dtype,
                          const Waiting& waiting) = 0;
  virtual void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op,
                              const Waiting& waiting) = 0;
  /// Only root's `data` changes.
  virtual void reduce(void* data, int64_t count, DType dtype, ReduceOp op, int root,
                      const Waiting& waiting) = 0;
  /// Every collective that only moves data: see exchange.h. `in` and `out` may be null where
  /// nothing is sent or received; a rank's own piece may lie at its place in the other buffer.
  virtual void exchange(const Exchange& exchange, const void* in, void* out,
                        const Waiting& waiting) = 0;
  virtual void barrier(const Waiting& waiting) = 0;
  virtual void send(const void* data, int64_t count, DType dtype, int destination, int tag,
                    const Waiting& waiting) = 0;
  virtual void recv(void* data, int64_t count, DType dtype, int source, int tag,
                    const Waiting& waiting) = 0;
  virtual std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) = 0;
};

}  // namespace lockstep
