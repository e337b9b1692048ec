#pragma once

#include <string>
#include <vector>

#include "lockstep/world/detect/reader.h"
#include "lockstep/world/identity.h"

namespace lockstep {

/// Decides how the ranks of `id` will meet, and what proves that they belong together: fills
/// meeting, channels, secret, insecure, address. Errors: kInvalidArgument when no place is known
/// and nothing can carry one, or when several hosts have no secret; says what to set.
void plan_meeting(const Reader& read, Identity* id, std::vector<std::string>* warnings);

}  // namespace lockstep
