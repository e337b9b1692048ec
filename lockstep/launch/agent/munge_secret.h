#pragma once

#include <memory>
#include <string>

#include "lockstep/deadline.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/world/bootstrap/exchange.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

struct MungeSecret {
  std::string secret;
  /// On host 0: gives the secret to agents that come later, as long as it lives.
  std::shared_ptr<RankExchange> giver;
};

/// A secret for the agents of `step` that were given none, such as plain srun's. Host 0 makes it;
/// munged lets only this user's processes read it. Errors: kTimeout, kUnavailable.
MungeSecret secret_by_munge(const Identity& step, const RunOptions& options, Deadline deadline);

}  // namespace lockstep::inline internal
