#pragma once

#include <optional>

#include "lockstep/world.h"

namespace lockstep {

/// What World::join() returns in this thread, instead of what the environment says: for ranks that
/// are threads.
std::optional<World>& assigned_world();

}  // namespace lockstep
