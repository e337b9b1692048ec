#pragma once
// The interface of a back end: blocking collectives over pointer, count, dtype and op.
//
// ProcessGroup does the rest once for all back ends: it checks arguments, runs asynchronous calls
// in threads, and repeats the first fatal error.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/exchange.h"
#include "lockstep/comm/message_matcher.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/process_group.h"
#include "lockstep/store.h"
#include "lockstep/types.h"

namespace lockstep::shm {
class FdServer;
}

namespace lockstep::inline internal {

class RankGroups;

/// How a call may wait.
struct Waiting {
  Deadline deadline;
  /// True: the caller waits for the result, so a short spin is worth it. False: the caller's
  /// threads compute meanwhile and need the core, so the call sleeps at once.
  bool spin = true;
  CallSite site = {};      ///< Where the program made the call.
  bool on_device = false;  ///< CollectiveOptions::on_device; true only if GroupImpl has a device().
  std::shared_ptr<DeviceOrder> order = {};  ///< CollectiveOptions::order.
  /// When the call began, for the flight recorder; the epoch: it begins now. A reading of the clock
  /// is a tenth of a barrier, and the deadline needs one.
  Deadline::Clock::time_point began = {};
};

/// The purpose of a wait.
struct WaitReason {
  std::function<std::string()> text;  ///< For errors: "all_reduce #3 (...) on rank 0".
  uint64_t sequence = 0;              ///< Of the collective; 0: point to point.
};

/// One group as a back end sees it. Equal on all members but for `rank`.
struct GroupSpec {
  int rank = 0;
  int size = 1;
  std::string name;  ///< Unique in the job; the prefix of this group's keys in the store.
  std::vector<int> world_ranks;        ///< By rank. Messages name world ranks: see rank_name().
  std::vector<std::string> host_ids;   ///< By rank: World::host_id.
  std::vector<std::string> addresses;  ///< By rank: World::address.
  /// By rank: its flight recorder, readable also after the rank's death. Null if it cannot be read
  /// from here, as on other hosts. May be empty.
  std::vector<std::shared_ptr<const UniqueFd>> recorders;
  /// The descriptor server of this process, for ranks that open its memory. May be null.
  std::shared_ptr<const shm::FdServer> fd_server;
  /// By rank: its accelerator, as "cuda:1 GPU-f81d4fae": the name in its process, then a unique
  /// identifier. An empty text: none. The vector may be empty.
  std::vector<std::string> devices;
  /// By rank of the world: the address on which its tcp::Reception listens. All members fill it
  /// alike when the first group over several hosts is made; its sub-groups share it. Null in a
  /// world of one rank.
  std::shared_ptr<std::map<int, std::string>> endpoints;
  std::string secret;  ///< World::secret.
  std::shared_ptr<Store> store;
  /// Shared by all groups of this rank. Null if lives are not watched, as in a world of one rank.
  std::shared_ptr<RankGroups> rank_groups;
  /// Name of the group of which this is the part on one host, and whose error it shares; empty:
  /// the group stands alone.
  std::string whole;
  /// Name of the group from which this one is split. If that group ends meanwhile, a member of this
  /// one may learn of it and not join. Empty: no group to watch.
  std::string split_of;
  std::chrono::milliseconds timeout{};  ///< GroupOptions::timeout, for calls without a deadline.

  /// "rank 3", in the world's numbering.
  std::string rank_name(int group_rank) const;
  /// The same for several ranks: "rank 1" or "ranks 1, 4-6".
  std::string rank_names(const std::vector<int>& group_ranks) const;
  /// The spec of the group of `ranks` (this group's numbering; this rank is among them), with
  /// `suffix` added to the name.
  GroupSpec subset(const std::vector<int>& ranks, const std::string& suffix) const;
  /// True if every rank has an accelerator that no other rank has, whose name starts with `prefix`
  /// ("cuda:"). If not, `why_not` receives the ranks that lack one; `maker` is its name for people
  /// ("CUDA"). The same on all ranks.
  bool has_a_device_each(std::string_view maker, std::string_view prefix,
                         std::string* why_not) const;
  /// This rank's accelerator in its process: "cuda:1" of "cuda:1 GPU-f81d4fae".
  std::string device_name() const;
};

/// One rank's end of a group: one object per rank.
///
/// Arguments have been checked: counts not negative, ranks in range (send and recv: not one's own),
/// pointers not null where count > 0. One thread at a time calls the collectives and allocate().
/// The sends and receive() may run meanwhile in other threads, one per peer and direction.
///
/// Errors are thrown as ProcessGroup documents. kMismatch, kTimeout and kPeerLost end the group;
/// afterwards only the destructor is called.
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
  /// Every collective that only moves data: see exchange.h. `in` and `out` may be null if nothing
  /// is sent or received. A rank's own piece may already be at its place in the other buffer.
  virtual void exchange(const Exchange& exchange, const void* in, void* out,
                        const Waiting& waiting) = 0;
  virtual void barrier(const Waiting& waiting) = 0;
  /// Sends a message if that needs no wait. False: call send() with it next. Never throws.
  virtual bool try_send(const void* /*data*/, const MessageHeader& /*message*/, int /*destination*/,
                        CallSite /*site*/) {
    return false;
  }
  /// False: the deadline has passed, and nothing of the message has been sent. Once a part is sent,
  /// a timeout is an error like any other.
  virtual bool send(const void* data, const MessageHeader& message, int destination,
                    const Waiting& waiting) = 0;
  /// Reads one message of `source`, whatever its tag, to the destination of `sink`. False: the
  /// deadline has passed, and no message has begun. Engines that cannot abandon a wait throw
  /// kTimeout instead. A sink whose look() throws ends the group; that may happen in any thread,
  /// beside another call.
  virtual bool receive(int source, MessageSink& sink, const Waiting& waiting) = 0;
  /// The next three are for a flight recorder. A recv of the program begins and has a number; its
  /// caller waits; it has ended (FlightEvent::failed).
  virtual uint64_t recv_begins(const MessageHeader& /*wanted*/, int /*source*/, CallSite /*site*/) {
    return 0;
  }
  virtual void recv_awaited(uint64_t /*number*/) {}  ///< Its caller waits for it from now on.
  virtual void recv_ended(uint64_t /*number*/, uint8_t /*failed*/) {}
  /// The reason why `peer` did not do its part in a message before this rank's timeout: "rank 2
  /// holds up rank 1: rank 1 waits in ...". Empty: unknown or none. May take a quarter of a second.
  /// Any thread.
  virtual std::string why_held_up(int /*peer*/) { return ""; }
  virtual std::shared_ptr<SharedBuffer> allocate(int64_t bytes, const Waiting& waiting) = 0;

  /// Makes `error` the error of this group on all ranks, unless there is one. Ranks in a call
  /// also end with it. May run beside any other call. Takes as long as the store does, until
  /// `deadline`.
  virtual void give_up(const Error& error, Deadline deadline) noexcept = 0;
};

}  // namespace lockstep::inline internal
