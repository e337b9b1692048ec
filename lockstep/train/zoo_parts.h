#pragma once
// The networks of the zoo under their names, for `model.network`.

namespace lockstep::inline internal {

/// They are registered before main() in every program that links a call of this function; the call
/// itself does nothing.
void link_zoo_parts();

}  // namespace lockstep::inline internal
