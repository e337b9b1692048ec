#pragma once
// The command line of `lockstep run`: torchrun's names, decided by a pure function.

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lockstep/launch/agent/stream_map.h"
#include "lockstep/launch/environment.h"

namespace lockstep {

/// What this host has to run ranks on.
struct Machine {
  int cores = 1;
  int gpus = 0;
};

struct RunOptions {
  int nproc_per_node = 1;
  int num_nodes = 1;  ///< MAX of --nnodes MIN:MAX.
  int min_nodes = 1;  ///< MIN; equal to num_nodes where --nnodes is one number.
  int node_rank = 0;  ///< Back end static: needed. Others: a wish, if given.
  bool node_rank_given = false;
  int max_restarts = 0;                 ///< Of all workers, after failures.
  std::string rdzv_backend = "static";  ///< static, c10d (built in), etcd, etcd-v2, file.
  std::string rdzv_endpoint;            ///< As given; what it means depends on the back end.
  std::optional<bool> is_host;  ///< c10d: serves the endpoint, or does not. Else: found out.
  std::string master_addr = "127.0.0.1";  ///< Several nodes: where node 0's agent serves the store.
  int master_port = 0;                    ///< 0 (one node only): a free one.
  std::string local_addr;                 ///< What this node's ranks advertise; empty: found out.
  std::string run_id;                     ///< Empty: made up.
  std::string role = "default";
  std::string log_dir;                                ///< Empty: nothing is written to disk.
  StreamMap redirects;                                ///< To files instead of the console.
  StreamMap tee;                                      ///< To files and the console.
  std::set<int> local_ranks_filter;                   ///< Console only; empty: all.
  std::chrono::milliseconds shutdown_timeout{30000};  ///< From SIGTERM to SIGKILL.
  std::chrono::milliseconds join_timeout{900000};     ///< For all nodes to come, or MIN of them.
  std::chrono::milliseconds last_call_timeout{3000};  ///< With MIN here, for more to come.
  bool help = false;
  std::vector<std::string> command;  ///< Program and its arguments.
};

/// Reads the words after `lockstep run`. Options end at "--" or at the first word that is none; `-`
/// and `_` are the same inside names; an option's default comes from PET_NAME where that is set.
/// Options of torchrun that Lockstep does not have are refused, never ignored.
/// Errors: kInvalidArgument naming the option (and the nearest one, for a misspelt name).
RunOptions parse_run_options(const std::vector<std::string>& words, const Environment& environment,
                             const Machine& machine);

/// The options, aligned, for --help.
std::string run_options_help();

}  // namespace lockstep
