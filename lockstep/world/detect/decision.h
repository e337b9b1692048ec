#pragma once
// The decision behind decide_identity(), with all that it was made from: for `lockstep env`.

#include <string>
#include <vector>

#include "lockstep/world.h"
#include "lockstep/world/detect/reader.h"
#include "lockstep/world/detect/source.h"
#include "lockstep/world/identity.h"

namespace lockstep {

/// What one source says.
struct Finding {
  const Source* source = nullptr;
  std::optional<Identity> identity;    ///< Nothing: incomplete, or not the launcher after all.
  std::string problem;                 ///< Why it is incomplete; empty: it is not.
  std::vector<std::string> variables;  ///< That it read.
  /// Why it does not count though it is complete: "it started the agent" and so on.
  std::string passed_over;
};

struct Decision {
  Identity identity;
  std::vector<Finding> findings;      ///< Sources of which there is a sign, by precedence.
  std::string why;                    ///< How `identity` was chosen, half a line.
  std::vector<std::string> warnings;  ///< A line each.
  std::string problem;                ///< Why the process must not join; empty: it may.
};

/// Pure: everything it looks at is in `inputs`.
Decision decide(const Inputs& inputs);
/// The same for a program that gives its rank itself: no launcher is asked.
Decision decide(const RankArguments& arguments, const Inputs& inputs);

}  // namespace lockstep
