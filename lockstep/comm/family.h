#pragma once
// What all groups of one rank have in common.

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

namespace lockstep {

namespace tcp {
class Reception;
}

/// One a rank and store; lives as long as any of the rank's groups, and says for so long, now and
/// then, that the rank lives (world/lives.h).
///
/// A rank that is lost to one group is lost to all that wait for its peers in others: where groups
/// overlap, as those of a mesh do, the ranks of one would else wait out their time for a rank that
/// has found the loss in another, and name that one. So the groups that a rank has when one of them
/// loses a peer end together, with the same cause. Groups that are made later know nothing of it.
///
/// A rank that ends the last of its groups in good order has left (world/lives.h): the end of its
/// process, then, is a loss for those that wait for it, and only in the group where they do.
class Family {
 public:
  /// A group, as its relatives see it.
  class Member {
   public:
    virtual ~Member() = default;
    /// See GroupImpl::give_up().
    virtual void give_up(const Error& error, Deadline deadline) noexcept = 0;
  };

  /// That of `world`'s rank, made when there is none. A request to the store, and one more when it
  /// is made. Errors: the store's.
  static std::shared_ptr<Family> of(const World& world, Deadline deadline);
  ~Family();
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  /// Where the rank's peers on other hosts come; it listens from the first call on. `address`: the
  /// rank's, `secret`: the job's. Errors: the constructor's.
  std::shared_ptr<tcp::Reception> reception(const std::string& address, const std::string& secret);

  void add(Member* group);
  /// It is not called any more when this returns.
  void remove(Member* group);
  /// A group has failed, or could not be made: the rank's end is not in good order any more.
  void note_failure() { has_failed_ = true; }
  /// `error`, the loss of a peer, ended a group of `ranks` (of the world), or it could not be made;
  /// null: it is no member yet. If one of them has died, as the store knows it, all other groups
  /// end with the same cause; who only left its group, or all of them, harms no other. Says first
  /// that this rank gave up because of that, so that it is not named beside the one that died when
  /// it ends, too. Takes a third of a second where nobody died, a second where the store does not
  /// answer.
  void lost(const Member* group, const std::vector<int>& ranks, const Error& error) noexcept;

 private:
  explicit Family(const World& world);
  void keep_alive();
  void say_left() const noexcept;
  void say_given_up(const std::string& why, Deadline limit) const;
  bool any_died(const std::vector<int>& ranks, Deadline limit) const;

  const std::shared_ptr<Store> store_;
  const int rank_;
  const uint32_t generation_ = fork_generation();
  /// A job that is frozen as a whole, and thaws, goes on.
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

}  // namespace lockstep
