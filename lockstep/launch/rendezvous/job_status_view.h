#pragma once
// An agent's view of the keys below live/status/. Pure.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/messages.h"
#include "lockstep/store.h"

namespace lockstep::inline internal {

class JobStatusView {
 public:
  explicit JobStatusView(std::string id) : id_(std::move(id)) {}

  /// Errors: kCorrupt (a leader's message is invalid).
  void take(const std::vector<KeyValueStore::Change>& changes);

  const std::string& term() const { return term_; }  ///< The leader's; empty: there is none.
  /// The present leader's record, or the last leader's if the job has ended. Nothing: the leader
  /// has not written yet, and another's record is an earlier job's.
  const std::optional<JobRecord>& record() const { return trusted_; }
  const std::optional<Error>& refused() const { return refused_; }
  const std::optional<Endpoint>& moved() const { return moved_; }

 private:
  void take_one(const KeyValueStore::Change& change);
  void trust();

  const std::string id_;
  std::string term_;
  std::optional<JobRecord> record_;
  std::optional<JobRecord> trusted_;
  std::optional<Error> refused_;
  std::optional<Endpoint> moved_;
};

}  // namespace lockstep::inline internal
