#pragma once
// What the averaging of gradients remembers between steps, to save and to go on from.

#include <map>
#include <string>

#include "lockstep/comm_hook.h"

namespace lockstep {

/// Of one rank.
struct AveragingState {
  /// What it fits: "hook" (CommHook::describe()), "ranks", and "buckets", the names of their
  /// parameters, an empty line between two buckets. Empty: there is nothing to remember.
  std::map<std::string, std::string> about;
  HookState tensors;
};

}  // namespace lockstep
