#pragma once

#include "lockstep/launch/rendezvous/membership.h"

namespace lockstep {

/// Begins the next generation with the agents that are usable: numbers it, marks who takes part and
/// makes each one's plan. Leaves the counts to the caller.
PublishPlans make_generation(MembershipState* state);

}  // namespace lockstep
