#include "lockstep/launch/job/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::inline internal {
namespace {

constexpr int kEarlyFailures = 2;
/// For a job that made steps before: eight failures take two minutes with the pauses between them.
constexpr int kLaterEarlyFailures = 8;
constexpr double kWorkSeconds = 60;
constexpr int kLongestDelay = 60;

bool shows_progress(const Failure& failure) {
  return failure.steps == Steps::kSome ||
         (failure.steps == Steps::kUnknown && failure.seconds >= kWorkSeconds);
}

/// Empty: another attempt may succeed.
std::string hopeless(const RestartRecord& record, const ExitStatus& status, int64_t generation) {
  if (status.code == 2 && generation == 1) return "exit code 2 means a wrong call";
  if (generation == 1 && (status.code == 126 || status.code == 127)) {
    return fmt::format("exit code {} means that a program cannot be run", status.code);
  }
  if (!record.stepped && record.early_failures >= kEarlyFailures) {
    return "it failed twice in a row before its first step";
  }
  if (record.early_failures >= kLaterEarlyFailures) {
    return fmt::format("it failed {} times in a row before a step", record.early_failures);
  }
  return "";
}

}  // namespace

RestartDecision after_failure(RestartRecord* record, int max_restarts, const Failure& failure,
                              int64_t generation) {
  if (failure.steps == Steps::kNone) ++record->early_failures;
  if (failure.steps == Steps::kSome) record->early_failures = 0;
  record->stepped = record->stepped || failure.steps == Steps::kSome;
  record->in_a_row = shows_progress(failure) ? 1 : record->in_a_row + 1;
  if (max_restarts == 0) return {};
  const std::string reason = hopeless(*record, failure.status, generation);
  if (!reason.empty()) return {false, reason};
  if (record->stepped && failure.steps == Steps::kNone) return {true, ""};
  if (record->restarts >= max_restarts) {
    return {false, max_restarts == 1 ? "its only restart is used up"
                                     : fmt::format("its {} restarts are used up", max_restarts)};
  }
  ++record->restarts;
  return {true, ""};
}

std::chrono::seconds restart_delay(const RestartRecord& record) {
  if (record.in_a_row < 2) return std::chrono::seconds(0);
  const int doublings = std::min(record.in_a_row - 2, 6);
  return std::chrono::seconds(std::min(1 << doublings, kLongestDelay));
}

}  // namespace lockstep::inline internal
