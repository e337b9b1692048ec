#include "lockstep/launch/agent/restart_policy.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr int kEarlyFailures = 2;

/// Empty: another attempt may end otherwise.
std::string hopeless(const RestartRecord& record, const ExitStatus& status) {
  if (status.code == 2) return "exit code 2 says that the call was at fault";
  if (status.code == 126 || status.code == 127) {
    return fmt::format("exit code {} says that a program cannot be run", status.code);
  }
  if (record.early_failures >= kEarlyFailures) {
    return "it failed twice in a row before its first step";
  }
  return "";
}

}  // namespace

RestartDecision after_failure(RestartRecord* record, int max_restarts, const Failure& failure) {
  if (failure.steps == Steps::kNone) ++record->early_failures;
  if (failure.steps == Steps::kSome) record->early_failures = 0;
  if (max_restarts == 0) return {};
  const std::string reason = hopeless(*record, failure.status);
  if (!reason.empty()) return {false, reason};
  if (record->restarts >= max_restarts) {
    return {false, max_restarts == 1 ? "its only restart is used up"
                                     : fmt::format("its {} restarts are used up", max_restarts)};
  }
  ++record->restarts;
  return {true, ""};
}

}  // namespace lockstep
