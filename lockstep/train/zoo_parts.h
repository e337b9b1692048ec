#pragma once
// The networks of the zoo under their names, for `model.network`.

namespace lockstep::inline internal {

/// Registers them, but for names that Registry::put() was given. The first call counts: make it
/// before a configuration is read.
void register_zoo();

}  // namespace lockstep::inline internal
