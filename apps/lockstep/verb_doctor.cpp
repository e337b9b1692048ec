#include <cstdio>
#include <utility>

#include "apps/lockstep/backend_table.h"
#include "apps/lockstep/verbs.h"
#include "lockstep/launch/doctor/command.h"

namespace lockstep::app {

std::span<const Command> checks() {
  static constexpr Command kChecks[] = {
      {"backends", "the back ends of collectives: built in, usable here, why not", doctor_backends},
      {"libtorch", "version and instruction set of the libtorch that lockstep has", nullptr},
  };
  return kChecks;
}

int verb_doctor(const std::vector<std::string>& args) {
  if (!args.empty() && (args[0] == "--help" || args[0] == "-h")) {
    HelpPage page = doctor::doctor_help();
    HelpGroup named{"Checks", {}};
    for (const Command& check : checks()) named.rows.push_back({check.name, check.summary});
    page.groups.push_back(std::move(named));
    std::fputs(help_text(page).c_str(), stdout);
    return 0;
  }
  if (args.empty() || args[0].starts_with('-')) return doctor::doctor_command(args);
  return dispatch(checks(), "lockstep doctor", "check", args);
}

/// If the program lockstep-doctor-backends is installed, it does the work, because it includes
/// libtorch's back ends.
int doctor_backends(const std::vector<std::string>& args) {
  execute_beside("lockstep-doctor-backends", args);
  auto reports = report_backends();
  for (const auto& [name, summary] :
       {std::pair{"c10d:gloo", "libtorch's own Gloo"},
        std::pair{"c10d:nccl", "libtorch's own NCCL"}, std::pair{"hccl", "Ascend's HCCL"}}) {
    reports.push_back({name, summary, false, false,
                       "lockstep-doctor-backends, which tests it, is neither beside lockstep nor "
                       "in PATH; was this built without libtorch?"});
  }
  return print_backends(reports, args);
}

}  // namespace lockstep::app
