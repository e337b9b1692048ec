#pragma once
// What makes the built-in parts that registries have.

namespace lockstep::inline internal {

/// Registers the zoo's networks, and lets registries make the other built-in parts. Call it before
/// a configuration is read; further calls change nothing.
void register_built_in_parts();

}  // namespace lockstep::inline internal
