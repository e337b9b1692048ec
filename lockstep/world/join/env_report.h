#pragma once
// The report of `lockstep env`: the decision of World::join(), before it acts on it.

#include <string>

#include "lockstep/world/detect/decision.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {

/// Data of a report besides the decision.
struct EnvFacts {
  Environment variables;
  int cores = 1;  ///< Usable by this process.
};

/// A table for users: the identity, where the ranks meet, the launchers found with their variables,
/// warnings, and obstacles. Contains no secret.
std::string env_report(const Decision& decision, const EnvFacts& facts);

/// The same as JSON. Numbers that are only known after the ranks have met are null.
std::string env_report_json(const Decision& decision, const EnvFacts& facts);

}  // namespace lockstep::inline internal
