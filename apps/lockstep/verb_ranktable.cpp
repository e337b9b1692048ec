#include "apps/lockstep/verbs.h"
#include "lockstep/launch/cli/commands.h"

namespace lockstep::app {

int verb_ranktable(const std::vector<std::string>& args) {
  return rank_table_command(args);
}

}  // namespace lockstep::app
