#pragma once
// What `lockstep env` says: the decision of World::join(), before it acts on it.

#include <string>

#include "lockstep/world/detect/decision.h"
#include "lockstep/world/environment.h"

namespace lockstep {

/// What a report is made of besides the decision.
struct EnvFacts {
  Environment variables;
  int cores = 1;  ///< That this process may use.
};

/// A table for people: the tuple, where the ranks meet, the sources found and their variables,
/// warnings, and what stands in the way. No secret is in it.
std::string env_report(const Decision& decision, const EnvFacts& facts);

/// The same as JSON, for programs. Numbers that are found when the ranks meet are null.
std::string env_report_json(const Decision& decision, const EnvFacts& facts);

}  // namespace lockstep
