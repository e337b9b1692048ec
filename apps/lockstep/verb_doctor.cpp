#include <cstdio>

#include "apps/lockstep/verbs.h"

namespace lockstep::app {

std::span<const Command> checks() {
  static constexpr Command kChecks[] = {
      {"backends", "the back ends of collectives: built in, usable here, why not", doctor_backends},
  };
  return kChecks;
}

int verb_doctor(const std::vector<std::string>& args) {
  const bool asked = !args.empty() && (args[0] == "--help" || args[0] == "-h");
  if (args.empty() || asked) {
    std::fprintf(asked ? stdout : stderr, "usage: lockstep doctor NAME [OPTIONS]\n\n%s",
                 command_table(checks()).c_str());
    return asked ? 0 : 2;
  }
  return dispatch(checks(), "lockstep doctor", "check", args);
}

}  // namespace lockstep::app
