#pragma once

#include "lockstep/world/environment.h"

namespace lockstep {

/// Whether a launcher has started this process's job before: after a failure, or because nodes came
/// or left (LOCKSTEP_GENERATION, TORCHELASTIC_RESTART_COUNT). The same call was good once then, so
/// what is wrong now is not the user's mistake. Unreadable variables say no.
bool is_later_generation(const Environment& environment);

}  // namespace lockstep
