#pragma once
// The decision of decide_identity() with all its reasons, for `lockstep env`.

#include <string>
#include <vector>

#include "lockstep/world.h"
#include "lockstep/world/detect/launcher_probe.h"
#include "lockstep/world/detect/reader.h"
#include "lockstep/world/identity.h"

namespace lockstep::inline internal {

/// The result of one probe.
struct ProbeResult {
  const LauncherProbe* probe = nullptr;
  std::optional<Identity> identity;    ///< Nothing: incomplete, or not the launcher after all.
  std::string problem;                 ///< Why it is incomplete; empty if it is not.
  std::vector<std::string> variables;  ///< Variables that it read.
  /// Why it does not count although it is complete: "it started the agent" and so on.
  std::string passed_over;
};

struct Decision {
  Identity identity;
  std::vector<ProbeResult> results;   ///< Of launchers with a sign here, by precedence.
  std::string why;                    ///< How `identity` was chosen, half a line.
  std::vector<std::string> warnings;  ///< A line each.
  std::string problem;                ///< Why the process must not join; empty if it may.
};

/// Pure: all its input is in `inputs`.
Decision decide(const Inputs& inputs);
/// The same for a program that gives its rank itself: ignores all launchers.
Decision decide(const RankArguments& arguments, const Inputs& inputs);

}  // namespace lockstep::inline internal
