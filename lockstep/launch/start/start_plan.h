#pragma once
// What the starter of several hosts decides before any agent runs.

#include <map>
#include <string>
#include <vector>

#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/job/start_messages.h"
#include "lockstep/launch/start/host_slots.h"

namespace lockstep {

/// By --host or --hostfile, with their ranks. Errors: kInvalidArgument, kNotFound, kIo.
std::vector<HostSlots> planned_hosts(const RunOptions& options);

/// What ranks on other hosts get of this environment, and of -x those on this one: a few variables
/// that are always meant, and those of -x. Errors: kInvalidArgument (-x names one that is not set).
std::map<std::string, std::string> exported_variables(const RunOptions& options,
                                                      const Environment& environment);

/// Whether no --rsh is needed: loopback, or this host's name with or without its domain.
bool is_this_host(const std::string& host);

/// Where the first of `hosts`, which says `hello`, is reached by all others.
std::string meeting_address(const StartHello& hello, const std::vector<std::string>& hosts);

}  // namespace lockstep
