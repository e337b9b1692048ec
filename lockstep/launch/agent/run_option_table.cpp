#include "lockstep/launch/agent/run_option_table.h"

#include <fmt/format.h>

#include <chrono>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

// A table of our own and not CLI11: torchrun's command line has two spellings of every name, ends
// at the first positional word and takes defaults from PET_ variables, and this program has to
// start in a millisecond.

namespace lockstep {
namespace {

int whole(const std::string& value, int lo, int hi, const std::string& what) {
  return static_cast<int>(parse_int(value, lo, hi, what));
}

std::chrono::milliseconds seconds(const std::string& value, const std::string& what) {
  size_t used = 0;
  double number = -1;
  try {
    number = std::stod(value, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != value.size() || !(number >= 0 && number <= 1e9)) {
    refuse_options(fmt::format("{}: '{}' is not a number of seconds", what, value));
  }
  return std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(number));
}

void set_nproc(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  const Machine& machine = *draft.machine;
  int& nproc = draft.options.nproc_per_node;
  if (value == "cpu") {
    nproc = machine.cores;
  } else if (value == "auto") {
    nproc = machine.gpus > 0 ? machine.gpus : machine.cores;
  } else if (value == "gpu") {
    if (machine.gpus == 0) refuse_options(what + ": this host has no GPU");
    nproc = machine.gpus;
  } else if (!value.empty() && value.find_first_not_of("0123456789-") == std::string::npos) {
    nproc = whole(value, 1, 1 << 16, what);
  } else {
    refuse_options(
        fmt::format("{}: '{}' is neither a number of processes nor auto, cpu or gpu", what, value));
  }
}

void set_nnodes(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  const auto parts = split(value, ':');
  if (parts.size() > 2)
    refuse_options(fmt::format("{}: '{}' is not a number of nodes", what, value));
  draft.options.num_nodes = whole(parts[0], 1, 1 << 20, what);
  if (parts.size() == 2 && whole(parts[1], 1, 1 << 20, what) != draft.options.num_nodes) {
    refuse_options(fmt::format(
        "{}: a changing number of nodes ({}) is not supported; give one number", what, value));
  }
  draft.options.min_nodes = draft.options.num_nodes;
}

void set_backend(RunOptionsDraft&, const std::string& value, const std::string& what) {
  if (value != "static") {
    refuse_options(
        fmt::format("{}: rendezvous back end '{}' is not supported; there is: static "
                    "(--master_addr, --master_port, --node_rank)",
                    what, value));
  }
}

void set_restarts(RunOptionsDraft&, const std::string& value, const std::string& what) {
  if (whole(value, 0, 1 << 30, what) > 0) {
    refuse_options(what + ": restarting failed workers is not supported; only 0 is");
  }
}

void set_rdzv_conf(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  for (const std::string& item : split(value, ',')) {
    const auto parts = split(item, '=');
    if (parts.size() != 2) refuse_options(fmt::format("{}: '{}' is not KEY=VALUE", what, item));
    if (parts[0] != "timeout") {
      refuse_options(
          fmt::format("{}: unknown key '{}'; there is: timeout (seconds)", what, parts[0]));
    }
    draft.options.join_timeout = seconds(parts[1], what + " timeout");
  }
}

void set_filter(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  draft.options.local_ranks_filter.clear();
  for (const std::string& item : split(value, ',')) {
    draft.options.local_ranks_filter.insert(whole(item, 0, 1 << 16, what));
  }
}

template <std::string RunOptions::*kText>
void set_text(RunOptionsDraft& draft, const std::string& value, const std::string&) {
  draft.options.*kText = value;
}

void set_node_rank(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  draft.options.node_rank = whole(value, 0, 1 << 20, what);
  draft.options.node_rank_given = true;
}

void set_master_addr(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  if (value.empty()) refuse_options(what + " is empty");
  draft.options.master_addr = value;
  draft.master_given = true;
}

void set_master_port(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  draft.options.master_port = whole(value, 0, 65535, what);
  draft.master_given = true;
}

void set_endpoint(RunOptionsDraft& draft, const std::string& value, const std::string&) {
  draft.rdzv_endpoint = value;
}

void set_run_id(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  if (value.find('/') != std::string::npos || value == "." || value == "..") {
    refuse_options(fmt::format("{}: '{}' cannot name a folder", what, value));
  }
  draft.options.run_id = value;
}

template <StreamMap RunOptions::*kMap>
void set_streams(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  draft.options.*kMap = StreamMap::parse(value, what);
  draft.streams_given = true;
}

void set_standalone(RunOptionsDraft& draft, const std::string&, const std::string&) {
  draft.standalone = true;
}

void set_shutdown_timeout(RunOptionsDraft& draft, const std::string& value,
                          const std::string& what) {
  draft.options.shutdown_timeout = seconds(value, what);
}

void set_help(RunOptionsDraft& draft, const std::string&, const std::string&) {
  draft.options.help = true;
}

void check_seconds(RunOptionsDraft&, const std::string& value, const std::string& what) {
  seconds(value, what);
}

template <const char* kReason>
void unsupported(RunOptionsDraft&, const std::string&, const std::string& what) {
  refuse_options(what + " is not supported: " + kReason);
}

constexpr char kPythonOnly[] = "workers are programs; for Python, write -- python3 ...";
constexpr char kLogSpecs[] = "lines go to the console and, with --log_dir, to files";
constexpr char kNoBinding[] = "use taskset or numactl in front of the program";
constexpr char kForwarded[] = "TERM, INT, HUP, QUIT, USR1 and USR2 are forwarded";
constexpr char kNoVirtual[] = "LOCAL_RANK always counts from 0 on each node";

void accept(RunOptionsDraft&, const std::string&, const std::string&) {}

using Table = std::vector<RunOption>;
constexpr auto kValue = OptionKind::kValue;
constexpr auto kFlag = OptionKind::kFlag;

Table of_ranks() {
  return {
      {"nproc_per_node", 0, kValue, "N", "processes on this node: a number, auto, cpu or gpu (1)",
       set_nproc},
      {"nnodes", 0, kValue, "N", "nodes (1)", set_nnodes},
      {"node_rank", 0, kValue, "R", "which of them this is, from 0 (0)", set_node_rank},
  };
}

Table of_meeting() {
  return {
      {"master_addr", 0, kValue, "HOST", "several nodes: address of node 0 (127.0.0.1)",
       set_master_addr},
      {"master_port", 0, kValue, "PORT",
       "its port (29500 with several nodes; one node: a free one)", set_master_port},
      {"rdzv_endpoint", 0, kValue, "H:P", "both at once", set_endpoint},
      {"rdzv_id", 0, kValue, "NAME", "name of the run (made up from date and time)", set_run_id},
      {"rdzv_conf", 0, kValue, "timeout=S", "how long nodes wait for each other (900)",
       set_rdzv_conf},
      {"local_addr", 0, kValue, "HOST", "address of this node for the others (found out)",
       set_text<&RunOptions::local_addr>},
      {"standalone", 0, kFlag, "", "one node, nothing to configure (the default)", set_standalone},
  };
}

Table of_output() {
  return {
      {"log_dir", 0, kValue, "DIR", "keep output: DIR/RUN/attempt_0/LOCAL_RANK/{stdout,stderr}.log",
       set_text<&RunOptions::log_dir>},
      {"redirects", 'r', kValue, "MAP",
       "to files only: 1 stdout, 2 stderr, 3 both; or 0:3,1:2 by local rank",
       set_streams<&RunOptions::redirects>},
      {"tee", 't', kValue, "MAP", "to files and console (3 with --log_dir alone)",
       set_streams<&RunOptions::tee>},
      {"local_ranks_filter", 0, kValue, "R,R", "only these local ranks on the console", set_filter},
  };
}

Table others() {
  return {
      {"role", 0, kValue, "NAME", "ROLE_NAME of the workers (default)",
       set_text<&RunOptions::role>},
      {"shutdown_timeout", 0, kValue, "S", "seconds from SIGTERM to SIGKILL (30)",
       set_shutdown_timeout},
      {"help", 'h', kFlag, "", "print this", set_help},
  };
}

/// Always so, whatever is said: taken so that torchrun's command lines work.
Table of_torchrun_taken() {
  return {
      {"no_python", 0, kFlag, "", "", accept},
      {"monitor_interval", 0, kValue, "S", "", check_seconds},
      {"rdzv_backend", 0, kValue, "NAME", "", set_backend},
      {"max_restarts", 0, kValue, "N", "", set_restarts},
  };
}

Table of_torchrun_refused() {
  return {
      {"module", 'm', kFlag, "", "", unsupported<kPythonOnly>},
      {"run_path", 0, kFlag, "", "", unsupported<kPythonOnly>},
      {"start_method", 0, kValue, "M", "", unsupported<kPythonOnly>},
      {"virtual_local_rank", 0, kFlag, "", "", unsupported<kNoVirtual>},
      {"numa_binding", 0, kValue, "M", "", unsupported<kNoBinding>},
      {"signals_to_handle", 0, kValue, "S", "", unsupported<kForwarded>},
      {"event_log_handler", 0, kValue, "H", "", unsupported<kLogSpecs>},
      {"logs_specs", 0, kValue, "L", "", unsupported<kLogSpecs>},
      {"duplicate_stdout_filters", 0, kValue, "F", "", unsupported<kLogSpecs>},
      {"duplicate_stderr_filters", 0, kValue, "F", "", unsupported<kLogSpecs>},
  };
}

Table joined(const std::vector<Table>& tables) {
  Table all;
  for (const Table& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace

const std::vector<RunOption>& run_option_table() {
  static const Table kOptions = joined({of_ranks(), of_meeting(), of_output(), others(),
                                        of_torchrun_taken(), of_torchrun_refused()});
  return kOptions;
}

void refuse_options(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

}  // namespace lockstep
