#include "lockstep/parallel/join.h"

#include <fmt/format.h>

#include <utility>

#include "lockstep/base/counted.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

std::string ranks_text(const ProcessGroup& group, std::vector<int> ranks) {
  for (int& rank : ranks) rank = group.world_rank(rank);
  return rank_words(ranks);
}

}  // namespace

JoinRound read_join_round(std::span<const JoinState> states) {
  JoinRound round;
  for (int rank = 0; rank < std::ssize(states); ++rank) {
    const JoinState& state = states[static_cast<size_t>(rank)];
    if (!state.active) {
      round.ended.push_back(rank);
      continue;
    }
    if (round.leader < 0) {
      round.leader = rank;
      round.training = state.training != 0;
    }
    ++round.num_active;
  }
  return round;
}

JoinSession::JoinSession(ProcessGroup group, JoinOptions options)
    : group_(std::move(group)), options_(std::move(options)) {}

JoinRound JoinSession::next(JoinState own) {
  std::vector<JoinState> states(static_cast<size_t>(group_.size()));
  group_.all_gather(&own, states.data(), 2, DType::kInt64).wait();
  JoinRound round = read_join_round(states);
  if (round.leader < 0) return round;
  report(round);
  last_leader_ = round.leader;
  ++steps_;
  return round;
}

void JoinSession::report(const JoinRound& round) {
  if (round.ended.size() == num_ended_) return;
  const bool first = num_ended_ == 0;
  num_ended_ = round.ended.size();
  const std::string text =
      fmt::format("uneven inputs: {} ran out of data {}after {}; {} of {} ranks go on",
                  ranks_text(group_, round.ended), first ? "first, " : "", counted(steps_, "step"),
                  round.num_active, group_.size());
  if (options_.throw_when_uneven) throw Error(ErrorCode::kMismatch, text);
  if (group_.rank() == round.leader) log(LogLevel::kInfo, text);
}

double JoinSession::scale(const JoinRound& round) const {
  if (!options_.divide_by_active || round.num_active == 0) return 1;
  return static_cast<double>(group_.size()) / round.num_active;
}

}  // namespace lockstep::inline internal
