#pragma once
// The hosts of a job, the ranks of each, and their variables: decided before any agent runs.

#include <map>
#include <string>
#include <vector>

#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/job/start_messages.h"

namespace lockstep::inline internal {

struct HostSlots {
  std::string host;  ///< As given: a name, an address, or USER@HOST for ssh. IPv6 without brackets.
  int slots = 1;
};

/// -H of mpirun and Horovod: "a:2,b,[fd00::1]:4". A host without a number has one slot; repeated
/// hosts add up. Slurm's "gpu[01-03,7]:4" means four hosts of four slots. Errors: kInvalidArgument
/// naming `what` and the item.
std::vector<HostSlots> parse_host_list(const std::string& text, const std::string& what);

/// The same items unchanged: a repeated host appears twice.
std::vector<HostSlots> host_list_items(const std::string& text, const std::string& what);

/// The text of a host file, a host a line: "name slots=2" (Open MPI; max_slots is not used),
/// "name:2" (MPICH) or "name" (msrun), with # comments. Errors: kInvalidArgument naming `file` and
/// line.
std::vector<HostSlots> parse_host_file(const std::string& text, const std::string& file);

struct HostPlanOptions {
  int ranks = 0;               ///< -n: ranks of the whole job; 0: as many as slots.
  int ranks_per_host = 0;      ///< --nproc_per_node, whatever the slots; 0: not given.
  bool oversubscribe = false;  ///< -n may exceed the slots; the rest is distributed in turns.
};

/// In the result, `slots` are the ranks of a host, at least one. Hosts keep their order; hosts
/// without ranks are left out. Ranks fill a host's slots before the next host's. Errors:
/// kInvalidArgument (no hosts; more ranks than slots).
std::vector<HostSlots> plan_hosts(const std::vector<HostSlots>& hosts,
                                  const HostPlanOptions& options);

/// The words that start `command` on `host`: `rsh` split at spaces, with "{host}" replaced (or the
/// host appended if it does not occur). Then `command` as one word, as ssh and sh -c expect it.
std::vector<std::string> remote_words(const std::string& rsh, const std::string& host,
                                      const std::string& command);

/// `word` quoted for a shell, in single quotes if necessary.
std::string shell_quoted(const std::string& word);

/// The hosts of --host or --hostfile with their ranks. Errors: kInvalidArgument, kNotFound, kIo.
std::vector<HostSlots> planned_hosts(const RunOptions& options);

/// Variables of this environment for ranks on other hosts: a few standard ones, and those of -x.
/// Ranks on this host get those of -x too. Errors: kInvalidArgument (-x names one that is not set).
std::map<std::string, std::string> exported_variables(const RunOptions& options,
                                                      const Environment& environment);

/// Whether no --rsh is needed: loopback, this host's name with or without its domain, or an address
/// of one of its interfaces, in figures.
bool is_this_host(const std::string& host);

/// The address at which all others reach the first of `hosts`, which sent `hello`.
std::string rendezvous_address(const StartHello& hello, const std::vector<std::string>& hosts);

}  // namespace lockstep::inline internal
