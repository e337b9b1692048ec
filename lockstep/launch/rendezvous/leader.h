#pragma once
// The part of a job's leader: turns what is seen at the meeting place into events of the
// membership, and its actions into what is written there. Used by one thread.

#include <memory>
#include <string>

#include "lockstep/launch/rendezvous/membership.h"
#include "lockstep/store.h"

namespace lockstep {

class Leader {
 public:
  /// `id`: of the agent that leads.
  Leader(std::shared_ptr<Store> store, MembershipRules rules, std::string id);

  /// All there is below live/, as a first watch returns it. Keys of an earlier job are cleared.
  void begin(const std::vector<Store::Change>& all);
  /// What changed below live/ since. Errors (of all these): those of the store.
  void take(const std::vector<Store::Change>& changes);
  void look_at_clock();

  std::optional<JobTime> next_look() const { return act_at(state_); }
  bool ended() const { return state_.state == JobRecord::State::kEnded; }
  bool running() const { return state_.state == JobRecord::State::kRunning; }

 private:
  void take_one(const Store::Change& change);
  void tell(const MemberEvent& event);
  void act(const PublishPlans& action);
  void act(const PublishRecord& action);
  void act(const RefuseAgent& action);
  void clear();

  std::shared_ptr<Store> store_;
  std::string id_;
  MembershipState state_;
  int64_t agents_said_ = 0;  ///< How many there were when the last record was written.
};

/// How a refused agent is told, and what it reads.
std::string to_json(const RefuseAgent& refusal);
Error refusal_from_json(std::string_view text);

}  // namespace lockstep
