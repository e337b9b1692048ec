#include "apps/lockstep/verbs.h"
#include "lockstep/launch/cli/commands.h"

namespace lockstep::app {

int verb_run(const std::vector<std::string>& args) {
  return run_command(args);
}

}  // namespace lockstep::app
