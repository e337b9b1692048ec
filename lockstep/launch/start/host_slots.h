#pragma once
// Which hosts a job is started on, how many ranks each runs, and what they are told: decided before
// any agent runs.

#include <map>
#include <string>
#include <vector>

#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/job/start_messages.h"

namespace lockstep {

struct HostSlots {
  std::string host;  ///< As given: a name, an address, or USER@HOST for ssh. IPv6 without brackets.
  int slots = 1;
};

/// mpirun's and Horovod's -H: "a:2,b,[fd00::1]:4"; a host without a number has one slot, one that
/// occurs twice has the sum. Slurm's "gpu[01-03,7]:4" is four hosts of four slots. Errors:
/// kInvalidArgument naming `what` and the item.
std::vector<HostSlots> parse_host_list(const std::string& text, const std::string& what);

/// The same as they stand there: one that occurs twice is there twice.
std::vector<HostSlots> host_list_items(const std::string& text, const std::string& what);

/// A host file's text: a host a line, as "name slots=2" (Open MPI; max_slots is not used), "name:2"
/// (MPICH) or "name" (msrun), with # comments. Errors: kInvalidArgument naming `file` and line.
std::vector<HostSlots> parse_host_file(const std::string& text, const std::string& file);

struct HostPlanOptions {
  int ranks = 0;               ///< -n: of the whole job; 0: as many as there are slots.
  int ranks_per_host = 0;      ///< --nproc_per_node, whatever the slots; 0: not given.
  bool oversubscribe = false;  ///< -n may be above the slots; the rest is dealt out in turns.
};

/// `slots` of the result: ranks that the host runs, at least one; hosts keep their order, and those
/// that would run none are left out. Ranks fill a host's slots before the next host's.
/// Errors: kInvalidArgument (no hosts; more ranks than slots).
std::vector<HostSlots> plan_hosts(const std::vector<HostSlots>& hosts,
                                  const HostPlanOptions& options);

/// The words that start `command` on `host`: `rsh` cut at spaces, "{host}" in it replaced (or,
/// where it does not occur, the host appended), then the command as one word, as ssh and sh -c take
/// it.
std::vector<std::string> remote_words(const std::string& rsh, const std::string& host,
                                      const std::string& command);

/// `word` for a shell: in single quotes where it has to be.
std::string shell_quoted(const std::string& word);

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
