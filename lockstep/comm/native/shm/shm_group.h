#pragma once
// Collectives between the ranks of one host through shared memory.
//
// Every operation starts with a header from each rank, compared by all, and has at most one barrier
// more. Memory from allocate() is reduced where it lies: each rank reads its slice in all slots and
// writes it to all. Other memory goes in chunks through staging areas that stay in the cache.
// Nothing has a name in the file system: the memory is gone when the last rank is.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/comm/op_header.h"
#include "lockstep/error.h"

namespace lockstep {

/// The transport, and what the hierarchical composition builds on. All members of the group are
/// ranks of this host.
class ShmGroup : public GroupImpl {
 public:
  /// Starts an operation of one's own: compares `header` with the other ranks' (kMismatch), and
  /// tells where `data` (`bytes` long, the same on all ranks) of every rank can be reached here, by
  /// rank. Empty when some rank's data is not in memory from one allocate() call of this group.
  /// The data may be touched until sync() returns.
  virtual std::vector<std::byte*> enter(const OpHeader& header, const void* data, int64_t bytes,
                                        const Waiting& waiting) = 0;
  /// Returns when all ranks have called it; what they wrote before is seen after.
  virtual void sync(const Waiting& waiting) = 0;
  /// Ends what enter() began: only messages need it, which tell what a rank did last.
  virtual void finish() = 0;
  /// What follows is told and compared as operation `number` of the group of which this is a part.
  virtual void tell_as(uint64_t number) = 0;

  /// Makes `error` the end of this group for all its ranks: they throw it from the call they are in
  /// and from all later ones. The first error of any rank wins.
  virtual void fail(const Error& error) = 0;
  /// From now on collectives also end as if their time were over when `alarm()` is true, which a
  /// waiting rank asks every few milliseconds.
  virtual void set_alarm(std::function<bool()> alarm) = 0;
  /// After a kTimeout of a collective: the ranks that it waited for. Empty where another rank's
  /// call timed out first.
  virtual const std::vector<int>& awaited() const = 0;
};

/// Collective over the members. Errors: kTimeout naming who did not come, kUnavailable (memory of
/// another process cannot be opened: says why).
std::unique_ptr<ShmGroup> make_shm_group(const GroupSpec& spec, Deadline deadline);

}  // namespace lockstep
