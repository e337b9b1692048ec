#pragma once

#include <optional>

#include "lockstep/world.h"

namespace lockstep::inline internal {

/// Result of World::join() in this thread, in place of the environment: for ranks that are threads.
std::optional<World>& assigned_world();

}  // namespace lockstep::inline internal
