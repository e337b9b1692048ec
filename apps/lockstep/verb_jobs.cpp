#include "apps/lockstep/ranks_here.h"
#include "apps/lockstep/verbs.h"
#include "lockstep/launch/jobs/job_control.h"

namespace lockstep::app {

int verb_ps(const std::vector<std::string>& args) {
  return ps_command(args, ranks_here);
}

int verb_stop(const std::vector<std::string>& args) {
  return stop_command(args, ranks_here);
}

int verb_logs(const std::vector<std::string>& args) {
  return logs_command(args, ranks_here);
}

}  // namespace lockstep::app
