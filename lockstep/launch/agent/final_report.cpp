#include "lockstep/launch/agent/final_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "lockstep/base/counted.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/job/start_messages.h"

namespace lockstep {
namespace {

/// After a signal, output is passed on for the rest of the grace, and at least this long.
constexpr std::chrono::seconds kReadAtLeast{5};

}  // namespace

/// The sender of a signal waits for output no longer than for the workers.
std::optional<Deadline> FinalReport::read_by() const {
  if (state.stop_signal == 0) return std::nullopt;
  const auto least = std::chrono::steady_clock::now() + kReadAtLeast;
  return Deadline::at(std::max(state.kill_at.value_or(least), least));
}

/// Names the ranks that had ended well before: others may fail because those are gone.
std::string FinalReport::report_of(const Failure& failure) const {
  std::string text =
      report_text(failure, assignment.num_nodes, console->has_shown(2, failure.stderr_tail));
  if (failure.node_rank != assignment.node_rank || failure.rank < 0) return text;
  std::vector<int> ranks;
  for (const int local_rank : ended_well_before(state, failure.rank - assignment.ranks.first_rank))
    ranks.push_back(assignment.ranks.first_rank + local_rank);
  if (ranks.empty()) return text;
  return text + fmt::format("\n  {} had ended before it, with exit code 0", rank_words(ranks));
}

int FinalReport::write(int code, const std::optional<Failure>& failure,
                       const std::string& why_not_again) const {
  const auto until = read_by();
  if (const size_t bytes = console->drain(until); bytes > 0) {
    console->put(2, fmt::format("lockstep run: {} of output were dropped: nobody read them",
                                counted(static_cast<int64_t>(bytes), "byte")));
  }
  if (!why_not_again.empty()) {
    console->put(2, "lockstep run: no further restart: " + why_not_again);
  }
  if (failure && options.started_by_starter) {
    console->put(1, std::string(kStarterMark) + "report " + to_json(*failure));
  } else if (failure) {
    console->put(2, report_of(*failure));
  }
  console->drain(until);
  const std::string lost = console->failure();
  if (lost.empty()) return code;
  console->put(2, "lockstep run: error: " + lost + "; the ranks' output is lost");
  console->drain(until);
  return code == 0 ? 1 : code;
}

}  // namespace lockstep
