#pragma once
// Answers for a host when none of its ranks is in the group's call.

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "lockstep/comm/group_impl.h"

namespace lockstep::inline internal {

/// For one request of diagnostics to the store.
inline constexpr std::chrono::seconds kDiagnosticsStoreLimit{1};

/// A thread of a host's first two ranks in a group, one of which may be frozen. It sleeps until a
/// rank of another host requests the operations of this host's ranks through the store. Then it
/// calls `answer(with_stacks)`, or `look(token)` for each requested token. Groups of one host, and
/// the other ranks, have none. It ends with the object.
class DiagnosticsThread {
 public:
  DiagnosticsThread(const GroupSpec& spec, std::function<void(bool with_stacks)> answer,
                    std::function<void(const std::string& token)> look);
  ~DiagnosticsThread();
  DiagnosticsThread(const DiagnosticsThread&) = delete;
  DiagnosticsThread& operator=(const DiagnosticsThread&) = delete;

  /// Requests an answer of the diagnostics threads of `host` (as numbered by make_topology()).
  /// Errors: the store's.
  static void ask(const GroupSpec& spec, int host, bool with_stacks, Deadline deadline);
  /// Requests a look of the diagnostics threads of `host`. Errors: the store's.
  static void ask_to_look(const GroupSpec& spec, int host, const std::string& token,
                          Deadline deadline);
  /// Withdraws the request `token` on all hosts. Errors: the store's.
  static void take_back(const GroupSpec& spec, const std::string& token, Deadline deadline);

 private:
  std::function<void()> stop_;
  std::thread thread_;
};

}  // namespace lockstep::inline internal
