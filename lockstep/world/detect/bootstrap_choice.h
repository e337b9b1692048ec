#pragma once

#include <string>
#include <vector>

#include "lockstep/world/detect/reader.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

/// Decides how the ranks of `id` will meet, and by which secret they identify each other: fills
/// bootstrap, channels, secret, insecure, address. Errors: kInvalidArgument with advice, if no
/// address is known and no channel is available, or if several hosts have no secret.
void choose_bootstrap(const Reader& read, Identity* id, std::vector<std::string>* warnings);

}  // namespace lockstep::inline internal
