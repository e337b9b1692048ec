#pragma once
// Gathering the facts of this host.

#include <string>
#include <vector>

#include "lockstep/launch/doctor/facts.h"

namespace lockstep::doctor {

struct GatherRequest {
  std::vector<std::string> names;  ///< Host names to resolve.
  std::string folder;              ///< Where the job runs; must exist. Empty: none.
  std::string log_folder;          ///< May be missing yet. Empty: none.
  std::string hccn_conf;           ///< Empty: hccn_tool, else /etc/hccn.conf if there is one.
};

/// Everything but HostFacts::ports. Unknown facts stay empty or -1. Cost: runs a few programs, 10 s
/// each at most.
HostFacts gather_facts(const GatherRequest& request);

/// How this host resolves `name`, and how long that takes.
NameLookup timed_look_up(const std::string& name);

}  // namespace lockstep::doctor
