#include <cstdio>

#include "apps/lockstep/verbs.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/env_report.h"

namespace lockstep::app {
namespace {

constexpr const char* kUsage =
    "usage: lockstep env [--json]\n\n"
    "Prints which launcher's variables are set here, which one a program would follow, and which "
    "rank\nit would be; start it as you start the program: mpirun -n 4 lockstep env.\n"
    "Ends with 2 where a program would refuse.\n";

}  // namespace

int verb_env(const std::vector<std::string>& args) {
  bool json = false;
  for (const auto& arg : args) {
    if (arg == "--help" || arg == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (arg != "--json")
      throw Error(ErrorCode::kInvalidArgument,
                  "lockstep env: unknown option '" + arg + "'; --json");
    json = true;
  }
  const EnvFacts facts{this_environment(), usable_cores()};
  const Decision decision = decide(inputs_from(facts.variables));
  const auto text = json ? env_report_json(decision, facts) : env_report(decision, facts);
  std::fputs(text.c_str(), stdout);
  return decision.problem.empty() ? 0 : 2;
}

}  // namespace lockstep::app
