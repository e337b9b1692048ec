#pragma once
// Waits while a group is made, before its ranks share anything that reports a death.
//
// A wait ends when a rank on which it waits has died or another rank has given the group up. In a
// split it also ends when the old group has ended. The first rank with a reason writes it down as
// the group's error, so all throw the same.

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// One rank's view of a group that is being made; for one thread. Rank numbers are the group's.
/// Groups without a RankGroups are not watched.
class Making {
 public:
  explicit Making(const GroupSpec& spec);

  /// As Store::wait() and get(), for keys that `ranks` will write. Errors: kPeerLost naming the
  /// rank that died, the group's error, the store's.
  void wait(std::span<const std::string> keys, const std::vector<int>& ranks, Deadline deadline);
  std::string get(const std::string& key, const std::vector<int>& ranks, Deadline deadline);
  /// For waits of other kinds; may be called at any rate: it queries the store at most once per
  /// pause(). Errors: as above.
  void look(const std::vector<int>& ranks);
  std::chrono::milliseconds pause() const { return pause_; }

 private:
  void check(const std::vector<int>& ranks);
  template <class Ask>
  auto in_slices(const std::vector<int>& ranks, Deadline deadline, const Ask& ask);

  const GroupSpec& spec_;
  const std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point next_look_;
};

/// The error with which all ranks of `spec` give up making it: the error of the first that did. If
/// a rank has died, its death is the cause of other errors, and the other groups of this rank end,
/// too (RankGroups::lost()). A member that is late in a split may wait in the old group. That group
/// has some seconds to report the rank for which it waits. Never throws.
Error unmade(const GroupSpec& spec, const Error& error);

}  // namespace lockstep::inline internal
