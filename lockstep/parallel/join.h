#pragma once
// Training on inputs of different length: ranks without data take part in the others' collectives.

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/ddp_options.h"
#include "lockstep/process_group.h"

namespace lockstep::inline internal {

/// A rank's state before a step.
struct JoinState {
  int64_t active = 0;    ///< 1 if the rank has data.
  int64_t training = 0;  ///< 1 if its module is in training mode, which sends buffers.
};

struct JoinRound {
  int leader = -1;        ///< Lowest rank with data; its buffers and order count. -1: none has any.
  int num_active = 0;     ///< Ranks with data.
  bool training = false;  ///< Of the leader.
  std::vector<int> ended = {};  ///< Ranks without data.
};
JoinRound read_join_round(std::span<const JoinState> states);

/// One join() of a model on one rank: before every averaged step it asks all ranks for their state.
class JoinSession {
 public:
  JoinSession(ProcessGroup group, JoinOptions options);

  /// Collective: 16 bytes per rank. The leader logs the ranks that ran out of data. Errors:
  /// kMismatch with throw_when_uneven; those of the group.
  JoinRound next(JoinState own);

  /// The factor for an average over all ranks in this round.
  double scale(const JoinRound& round) const;
  /// The leader of the last round in which a rank had data; 0 if there was none.
  int last_leader() const { return last_leader_; }
  const JoinOptions& options() const { return options_; }

 private:
  void report(const JoinRound& round);

  ProcessGroup group_;
  JoinOptions options_;
  int64_t steps_ = 0;
  size_t num_ended_ = 0;
  int last_leader_ = 0;
};

}  // namespace lockstep::inline internal
