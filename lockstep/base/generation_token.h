#pragma once
// Tells generations of one number apart: halves of a job that are cut off from each other both make
// the next one. "LAUNCH-LEADER": the first part is equal in all generations since the job was
// launched, and in no others; the second is the agent's that made the generation.

#include <string>

#include "lockstep/base/auth.h"

namespace lockstep {

inline std::string generation_token(const std::string& launch, const std::string& leader) {
  return launch + "-" + leader;
}

/// The first part; empty where the launcher gives no token.
inline std::string launch_of(const std::string& token) {
  return token.substr(0, token.find('-'));
}

/// Either part, such as no other process makes.
inline std::string make_token_part() {
  return make_job_secret().substr(0, 16);
}

}  // namespace lockstep
