#pragma once
// Collectives between the ranks of one host through shared memory.
//
// Every operation starts with a header from each rank, which all compare, and has at most one
// barrier more. Memory from allocate() is reduced in place: each rank reads its slice in all slots
// and writes it to all. Other memory is copied in chunks through staging areas that stay in the
// cache. The memory has no name in the file system: it ends with the last rank.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/op_header.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// The transport on which the hierarchical group builds. All members of the group are ranks of this
/// host.
class ShmGroup : public GroupImpl {
 public:
  /// Starts an operation: compares `header` with the other ranks' (kMismatch). Returns, by rank,
  /// the local address of every rank's `data` (`bytes` long, the same on all ranks). Empty if some
  /// rank's data is not in memory from one allocate() call of this group. The data may be accessed
  /// until sync() returns.
  virtual std::vector<std::byte*> enter(const OpHeader& header, const void* data, int64_t bytes,
                                        const Waiting& waiting) = 0;
  /// Returns when all ranks have called it; earlier writes are then visible.
  virtual void sync(const Waiting& waiting) = 0;
  /// Ends the operation that enter() began: needed only for messages about a rank's last operation.
  virtual void finish() = 0;
  /// Later operations are reported and compared as operation `number` of the group of which this is
  /// a part.
  virtual void tell_as(uint64_t number) = 0;

  /// Makes `error` the end of this group for all its ranks: they throw it from their present call
  /// and from all later ones. The first error of any rank wins.
  virtual void fail(const Error& error) = 0;
  /// From now on collectives also end as if they had timed out when `alarm()` is true; a waiting
  /// rank calls it every few milliseconds.
  virtual void set_alarm(std::function<bool()> alarm) = 0;
  /// After a kTimeout of a collective: the ranks that it waited for. Empty if another rank's call
  /// timed out first.
  virtual const std::vector<int>& awaited() const = 0;
};

/// Collective over the members. Errors: kTimeout, which names the missing ranks; kUnavailable
/// (memory of another process cannot be opened; with the reason).
std::unique_ptr<ShmGroup> make_shm_group(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep::inline internal
