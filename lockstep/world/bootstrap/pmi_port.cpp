#include "lockstep/world/bootstrap/pmi_port.h"

#include "lockstep/base/env.h"
#include "lockstep/base/socket.h"
#include "lockstep/world/decision.h"

namespace lockstep {
namespace {

/// The manager's proxy is on this host, and there before its processes are.
constexpr std::chrono::seconds kPortLimit{30};

bool only_port_tells(const Environment& environment) {
  if (!environment.contains("PMI_PORT") || !environment.contains("PMI_ID")) return false;
  const Decision decision = decide(inputs_from(environment));
  return decision.problem.empty() && decision.identity.launcher == "none";
}

int pmi_id(const Environment& environment) {
  return static_cast<int>(
      parse_int(environment.at("PMI_ID"), 0, 1 << 30, "environment variable PMI_ID"));
}

}  // namespace

PmiPort::PmiPort(const Environment& environment, Deadline deadline)
    : fd_(tcp_connect(parse_endpoint(environment.at("PMI_PORT"), 0), deadline)),
      wire_(fd_.get()),
      own_(wire_.introduce(pmi_id(environment), deadline)) {}

Environment with_pmi_port(Environment environment, Deadline deadline) {
  if (!only_port_tells(environment)) return environment;
  const auto soon = deadline.at_most(kPortLimit);
  PmiPort port(environment, soon);
  port.wire().finish(soon);
  environment["PMI_RANK"] = std::to_string(port.own().rank);
  environment["PMI_SIZE"] = std::to_string(port.own().size);
  return environment;
}

}  // namespace lockstep
