#pragma once

#include <string>

namespace lockstep {

/// Loads a shared library whose parts register themselves (registry.h). It stays loaded. Errors:
/// kInvalidArgument with the loader's reason; kMismatch (built for another version of registry.h).
void load_plugin(const std::string& path);

}  // namespace lockstep
