#pragma once
// State that all groups of one rank have in common.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/in_child.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/standstill.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/store.h"
#include "lockstep/world.h"

namespace lockstep::tcp {
class Reception;
}

namespace lockstep::inline internal {

/// One per rank and store; lives as long as any of the rank's groups, and sends heartbeats while it
/// exists (world/lives.h).
///
/// A rank that is lost to one group is lost to all. Groups of a mesh overlap. Their ranks would
/// else time out on a rank that found the loss in another group, and blame that rank. So the groups
/// that a rank has when one of them loses a peer end together, with the same cause. Groups that are
/// made later are not affected.
///
/// A rank that ends the last of its groups in good order has left (world/lives.h). The end of its
/// process is then a loss only in groups that wait for it.
class RankGroups {
 public:
  /// A group, as the other groups of its rank see it.
  class Member {
   public:
    virtual ~Member() = default;
    /// See GroupImpl::give_up().
    virtual void give_up(const Error& error, Deadline deadline) noexcept = 0;
  };

  /// The groups of `world`'s rank; made if there are none. Cost: a request to the store, and one
  /// more if they are made. Errors: the store's.
  static std::shared_ptr<RankGroups> of(const World& world, Deadline deadline);
  ~RankGroups();
  RankGroups(const RankGroups&) = delete;
  RankGroups& operator=(const RankGroups&) = delete;

  /// Accepts connections of the rank's peers on other hosts; it listens from the first call on.
  /// `address`: this rank's, `secret`: the job's. Errors: the constructor's.
  std::shared_ptr<tcp::Reception> reception(const std::string& address, const std::string& secret);

  void add(Member* group);
  /// After this returns, `group` is not called any more.
  void remove(Member* group);
  /// Records that a group failed or could not be made: the rank no longer ends in good order.
  void note_failure() { has_failed_ = true; }
  /// Handles `error`, the loss of a peer, which ended a group of `ranks` (of the world) or its
  /// creation. `group` is null if it is no member yet. If the store reports one of the ranks as
  /// dead, all other groups end with the same cause. A rank that only left its group, or all
  /// groups, harms no other group. First it reports that this rank gave up, so that this rank is
  /// not named beside the dead one when it ends. Takes a third of a second if no rank died, and a
  /// second if the store does not answer.
  void lost(const Member* group, const std::vector<int>& ranks, const Error& error) noexcept;

 private:
  explicit RankGroups(const World& world);
  void keep_alive();
  void say_left() const noexcept;
  void say_given_up(const std::string& why, Deadline limit) const;
  bool any_died(const std::vector<int>& ranks, Deadline limit) const;

  const std::shared_ptr<Store> store_;
  const int rank_;
  const uint32_t generation_ = fork_generation();
  /// A job that is frozen as a whole continues after it thaws.
  const std::shared_ptr<Pulse> pulse_ = Pulse::of_process();
  std::atomic<bool> has_failed_ = false;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  Mutex members_mutex_;
  std::vector<Member*> members_ LOCKSTEP_GUARDED_BY(members_mutex_);
  std::shared_ptr<tcp::Reception> reception_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::inline internal
