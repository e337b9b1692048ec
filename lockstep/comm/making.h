#pragma once
// Waits while a group is made, when its ranks share nothing yet that would tell of a death.
//
// Each of them ends when a rank that it is for has died, when another rank has given the group up,
// and, in a split, when the old group has ended: who finds a reason to writes it down as the
// group's verdict, so all throw the same.

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/error.h"

namespace lockstep {

/// One rank's view of a group that is being made; for one thread. Ranks are the group's. Groups
/// without a Family are not watched.
class Making {
 public:
  explicit Making(const GroupSpec& spec);

  /// As Store::wait() and get(), for what `ranks` are to write. Errors: kPeerLost naming the rank
  /// that died, the group's verdict, the store's.
  void wait(std::span<const std::string> keys, const std::vector<int>& ranks, Deadline deadline);
  std::string get(const std::string& key, const std::vector<int>& ranks, Deadline deadline);
  /// For waits of another kind, as often as one likes: asks the store at most every pause().
  /// Errors: as above.
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

/// The error with which all ranks of `spec` give up making it: that of the first that did. Where
/// one of them has died, what else went wrong came of that, and the other groups of this rank end,
/// too (Family::lost()). A member that is late in a split may wait in the old group, which is
/// given some seconds to say for whom. Never throws.
Error unmade(const GroupSpec& spec, const Error& error);

}  // namespace lockstep
