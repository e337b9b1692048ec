#pragma once
// The part of a group over several hosts that is within one host: access to each other's data, and
// barriers.

#include <cstddef>
#include <memory>
#include <vector>

#include "lockstep/comm/native/shm/shm_group.h"

namespace lockstep::inline internal {

/// The host's ranks by their place on it. A rank that is alone on its host reaches its own data and
/// has no barriers. Errors: as ShmGroup.
class HostRanks {
 public:
  /// `num_local` ranks, of which this is the `local`-th.
  HostRanks(std::unique_ptr<ShmGroup> shm, int local, int num_local);

  bool alone() const { return num_local_ == 1; }
  ShmGroup& shm() { return *shm_; }

  /// Starts an operation: compares headers. Returns the address of every local rank's `data`.
  /// Returns nothing if some of it cannot be reached: data then goes through slot() and result().
  std::vector<std::byte*> enter(const OpHeader& header, const void* data, int64_t bytes,
                                const Waiting& waiting);
  void sync(const Waiting& waiting);
  void finish();

  /// Staging memory of the host: one input slot per rank, one result area for all. There are two of
  /// each, used by rounds in turn. The call prepare() makes them large enough for a round of an
  /// operation of `bytes`. It is collective on the host and mostly finds them large enough.
  void prepare(int64_t bytes, const Waiting& waiting);
  std::byte* slot(int local, int64_t round) const { return area(local, round & 1); }
  std::byte* own_slot(int64_t round) const { return slot(local_, round); }
  std::byte* result(int64_t round) const { return area(0, 2 + (round & 1)); }

 private:
  std::byte* area(int local, int64_t index) const;

  std::unique_ptr<ShmGroup> shm_;
  int local_;
  int num_local_;
  int64_t area_bytes_ = 0;
  std::shared_ptr<SharedBuffer> staging_;
  std::vector<std::byte*> staging_of_;  // by local rank
};

}  // namespace lockstep::inline internal
