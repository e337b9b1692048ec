#include "lockstep/world/join/this_process.h"

#include <fcntl.h>
#include <unistd.h>

#include "lockstep/base/addresses.h"
#include "lockstep/base/file.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/world/bootstrap/munge_library.h"
#include "lockstep/world/bootstrap/pmi_wire.h"
#include "lockstep/world/bootstrap/pmix_library.h"
#include "lockstep/world/detect/decision.h"
#include "lockstep/world/secret.h"

namespace lockstep::inline internal {
namespace {

/// The manager's proxy is on this host, and starts before its processes.
constexpr std::chrono::seconds kPortLimit{30};

bool is_typed_below(const std::string& process) {
  const UniqueFd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  return terminal && process != std::to_string(::getpid());
}

bool only_port_tells(const Environment& environment) {
  if (!environment.contains("PMI_PORT") || !environment.contains("PMI_ID")) return false;
  const Decision decision = decide(inputs_from(environment));
  return decision.problem.empty() && decision.identity.launcher == "none";
}

}  // namespace

Inputs inputs_from(const Environment& variables) {
  return {variables,        [](const std::string& path) { return read_file(path, 64 << 20); },
          read_secret_file, ask_pmix_server,
          is_own_address,   is_typed_below,
          can_resolve,      munge_answers,
          why_no_munge};
}

Identity decide_identity(const Environment& environment) {
  const Decision decision = decide(inputs_from(environment));
  if (!decision.problem.empty()) throw Error(ErrorCode::kInvalidArgument, decision.problem);
  return decision.identity;
}

bool is_launched() {
  const Environment environment = this_environment();
  return only_port_tells(environment) || decide_identity(environment).launcher != "none";
}

Environment with_pmi_port(Environment environment, Deadline deadline) {
  if (!only_port_tells(environment)) return environment;
  const auto soon = deadline.at_most(kPortLimit);
  PmiPort port(environment, soon);
  port.wire().finish(soon);
  environment["PMI_RANK"] = std::to_string(port.own().rank);
  environment["PMI_SIZE"] = std::to_string(port.own().size);
  return environment;
}

}  // namespace lockstep::inline internal
