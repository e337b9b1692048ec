#pragma once
// Distinguishes generations with the same number: halves of a job that are cut off from each other
// both make the next one. "LAUNCH-LEADER": the first part is equal in all generations since the job
// was launched, and in no others. The second belongs to the agent that made the generation.

#include <string>

#include "lockstep/base/auth.h"

namespace lockstep::inline internal {

inline std::string generation_token(const std::string& launch, const std::string& leader) {
  return launch + "-" + leader;
}

/// The first part; empty if the launcher sets no token.
inline std::string launch_of(const std::string& token) {
  return token.substr(0, token.find('-'));
}

/// A value for either part, which no other process generates.
inline std::string make_token_part() {
  return make_job_secret().substr(0, 16);
}

}  // namespace lockstep::inline internal
