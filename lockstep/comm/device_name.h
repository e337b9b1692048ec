#pragma once
// How ranks call their accelerators, for libraries that this layer does not know.

#include <string>

#include "lockstep/world.h"

namespace lockstep::inline internal {

/// Registers `namer`, which returns GroupSpec::devices' text for this rank's accelerator. Each new
/// group's other ranks receive that text. Call it before main().
bool register_devices(std::string (*namer)(const World& world));
/// The text of the registered namer; empty without one.
std::string name_device(const World& world);

}  // namespace lockstep::inline internal
