#pragma once
// The leader's side of a job: turns changes in the rendezvous store into events of the membership,
// and writes its actions there. Used by one thread.

#include <memory>
#include <string>

#include "lockstep/launch/rendezvous/membership.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {

class Leader {
 public:
  Leader(std::shared_ptr<KeyValueStore> store, MembershipRules rules);

  /// Takes everything below live/, as returned by a first watch. Clears keys of an earlier job.
  void begin(const std::vector<KeyValueStore::Change>& all);
  /// Takes later changes below live/. Errors (of all these): those of the store.
  void take(const std::vector<KeyValueStore::Change>& changes);
  void look_at_clock();

  std::optional<JobTime> next_look() const { return act_at(state_); }
  bool ended() const { return state_.state == JobRecord::State::kEnded; }
  bool running() const { return state_.state == JobRecord::State::kRunning; }

 private:
  void take_one(const KeyValueStore::Change& change);
  void dispatch(const MemberEvent& event);
  void act(const PublishAssignments& action);
  void act(const PublishRecord& action);
  void act(const RefuseAgent& action);
  void clear();

  std::shared_ptr<KeyValueStore> store_;
  MembershipState state_;
  int64_t agents_reported_ = 0;  ///< Number of agents in the last record written.
};

/// The message that a refused agent reads.
std::string to_json(const RefuseAgent& refusal);
Error refusal_from_json(std::string_view text);

}  // namespace lockstep::inline internal
