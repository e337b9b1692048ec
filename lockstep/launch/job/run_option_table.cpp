#include "lockstep/launch/job/run_option_table.h"

#include "lockstep/error.h"
#include "lockstep/launch/job/run_option_values.h"

// As torchrun's: two spellings of every name, an end at the first positional word, and defaults
// from PET_ variables.

namespace lockstep::inline internal {
namespace {

template <std::string RunOptions::*kText>
void set_text(RunOptionsDraft& draft, const std::string& value, const std::string&) {
  draft.options.*kText = value;
}

template <bool RunOptionsDraft::*kFlag>
void set_run_flag(RunOptionsDraft& draft, const std::string&, const std::string&) {
  draft.*kFlag = true;
}

template <bool RunOptions::*kFlag>
void set_option_flag(RunOptionsDraft& draft, const std::string&, const std::string&) {
  draft.options.*kFlag = true;
}

template <StreamMap RunOptions::*kMap>
void set_streams(RunOptionsDraft& draft, const std::string& value, const std::string& what) {
  draft.options.*kMap = StreamMap::parse(value, what);
  draft.streams_given = true;
}

template <auto kMember>
std::vector<std::string> shows_run(const RunOptionsDraft& draft) {
  return {default_text(draft.options.*kMember)};
}

void accept(RunOptionsDraft&, const std::string&, const std::string&) {}

template <const char* kReason>
void unsupported(RunOptionsDraft&, const std::string&, const std::string& what) {
  refuse_options(what + " is not supported: " + kReason);
}

constexpr char kHostsNotGiven[] = "it is --host H:N,H:N here, N ranks each";
constexpr char kRanksOfHosts[] =
    "ranks of a host are --nproc_per_node N, or stand behind it: --host a:2,b:2";
constexpr char kNoLogNames[] =
    "leave it away; with --log_dir files are DIR/RUN/attempt_N/LOCAL_RANK/stdout.log";
constexpr char kNoTable[] =
    "lockstep run deals out the ranks itself, so leave it away; with a table start each rank with "
    "RANK_TABLE_FILE and RANK_ID set";

using Draft = RunOptionsDraft;
constexpr auto kValue = OptionKind::kValue;
constexpr auto kFlag = OptionKind::kFlag;

RunOptionGroup of_ranks() {
  return {
      "Ranks and hosts",
      {
          {"nproc_per_node", 0, kValue, "N",
           "processes on this host: a number, auto, cpu or gpu ({})", run_values::nproc,
           shows_run<&RunOptions::nproc_per_node>},
          {"nnodes", 0, kValue, "N|MIN:MAX", "hosts; with MIN:MAX they may come and go ({})",
           run_values::nnodes, shows_run<&RunOptions::num_nodes>},
          {"node_rank", 0, kValue, "R", "which of them this is, from 0 ({})", run_values::node_rank,
           shows_run<&RunOptions::node_rank>},
          {"np", 'n', kValue, "N", "ranks of the whole job; on one host as --nproc_per_node",
           run_values::total_ranks},
          {"npernode", 'N', kValue, "N", "as --nproc_per_node (mpirun)",
           run_values::local_worker_num},
          {"worker_num", 0, kValue, "N", "as -n (msrun)", run_values::total_ranks},
          {"local_worker_num", 0, kValue, "N", "how many of them this host runs (msrun)",
           run_values::local_worker_num},
          {"standalone", 0, kFlag, "", "one host, nothing to configure (the default)",
           set_run_flag<&Draft::standalone>},
      },
  };
}

RunOptionGroup of_rendezvous() {
  return {
      "Where hosts meet",
      {
          {"master_addr", 0, kValue, "HOST", "several hosts: address of host 0 ({})",
           run_values::master_addr, shows_run<&RunOptions::master_addr>},
          {"master_port", 0, kValue, "PORT",
           "its port ({} with several hosts; one host: a free one)", run_values::master_port,
           [](const Draft&) -> std::vector<std::string> { return {default_text(kTorchPort)}; }},
          {"rdzv_backend", 0, kValue, "NAME",
           "how hosts meet: static, c10d, etcd, etcd-v2 or file ({}; c10d with MIN:MAX)",
           run_values::backend, shows_run<&RunOptions::rdzv_backend>},
          {"rdzv_endpoint", 0, kValue, "H:P", "where: HOST:PORT, or a folder with file",
           set_text<&RunOptions::rdzv_endpoint>},
          {"rdzv_id", 0, kValue, "NAME", "name of the run (made up from date and time)",
           run_values::run_id},
          {"rdzv_conf", 0, kValue, "K=V,K=V",
           "timeout=S: wait for all hosts, or MIN ({}); last_call_timeout=S: then for MAX ({})",
           run_values::conf,
           [](const Draft& draft) -> std::vector<std::string> {
             return {default_text(draft.options.join_timeout),
                     default_text(draft.options.last_call_timeout)};
           }},
          {"cluster_time_out", 0, kValue, "S", "as --rdzv_conf timeout=S (msrun)",
           run_values::cluster_time_out},
          {"local_addr", 0, kValue, "HOST", "address of this host for the others (found out)",
           set_text<&RunOptions::local_addr>},
          {"port_range", 0, kValue, "A-B",
           "range of the ports that other hosts reach and no option names", run_values::port_range},
      },
  };
}

/// Options of mpirun.
RunOptionGroup of_hosts() {
  return {
      "Hosts that this command starts",
      {
          {"host", 'H', kValue, "H:N,H:N", "start the job on these hosts, N ranks each (1)",
           set_text<&RunOptions::hosts>},
          {"hostfile", 0, kValue, "FILE",
           "the same from a file: a line is HOST, HOST:N or HOST slots=N",
           set_text<&RunOptions::host_file>},
          {"machinefile", 0, kValue, "FILE", "", set_text<&RunOptions::host_file>},
          {"rsh", 0, kValue, "COMMAND",
           "how to reach a host; {host} is its name (ssh without questions, kept alive)",
           set_text<&RunOptions::rsh>},
          {"export", 'x', OptionKind::kList, "NAME[=V]",
           "a variable for all ranks; may be repeated", run_values::exported},
          {"wdir", 0, kValue, "DIR", "start the ranks in this folder (mpirun)",
           set_text<&RunOptions::work_folder>},
          {"oversubscribe", 0, kFlag, "", "-n may be above the hosts' slots",
           set_option_flag<&RunOptions::oversubscribe>},
      },
  };
}

RunOptionGroup of_failures() {
  return {
      "Failures, restarts and the end",
      {
          {"max_restarts", 0, kValue, "N", "how often failed workers are started again ({})",
           run_values::max_restarts, shows_run<&RunOptions::max_restarts>},
          {"shutdown_timeout", 0, kValue, "S", "seconds from SIGTERM to SIGKILL ({})",
           run_values::shutdown_timeout, shows_run<&RunOptions::shutdown_timeout>},
          {"signals_to_handle", 0, kValue, "S,S",
           "signals that are forwarded and end the job ({}, but those that are ignored, as SIGINT "
           "of a script's background job)",
           run_values::signals, shows_run<&RunOptions::signals_to_handle>},
          {"monitor_interval", 0, kValue, "S", "taken and unused: ends of workers are seen at once",
           run_values::seconds_only},
      },
  };
}

RunOptionGroup of_output() {
  return {
      "Output",
      {
          {"log_dir", 0, kValue, "DIR",
           "keep output: DIR/RUN/attempt_0/LOCAL_RANK/{stdout,stderr}.log; of several hosts in "
           "RUN_nodeR",
           set_text<&RunOptions::log_dir>},
          {"logdir", 0, kValue, "DIR", "",  // torch.distributed.launch
           set_text<&RunOptions::log_dir>},
          {"output_filename", 0, kValue, "DIR", "", set_text<&RunOptions::log_dir>},
          {"redirects", 'r', kValue, "MAP",
           "to files only: 1 stdout, 2 stderr, 3 both; or 0:3,1:2 by local rank",
           set_streams<&RunOptions::redirects>},
          {"tee", 't', kValue, "MAP", "to files and console (3 with --log_dir alone)",
           set_streams<&RunOptions::tee>},
          {"local_ranks_filter", 0, kValue, "R,R", "only these local ranks on the console",
           run_values::ranks_filter},
          {"tail_worker_log", 0, kValue, "R,R", "as --local_ranks_filter (msrun)",
           run_values::tail_worker_log},
          {"duplicate_stdout_filters", 0, kValue, "T,T",
           "lines with one of these texts also in attempt_N/filtered_stdout.log, of all ranks",
           run_values::stdout_filters},
          {"duplicate_stderr_filters", 0, kValue, "T,T",
           "the same of stderr, in filtered_stderr.log", run_values::stderr_filters},
          {"no_fold", 0, kFlag, "", "show identical lines of many ranks one by one, not as [0-31]",
           set_option_flag<&RunOptions::no_fold>},
          {"raw", 0, kFlag, "",
           "show output as it comes, without prefixes; so it is with one rank in all. Else a line "
           "longer than 64 KiB is cut there, with a mark; files have it whole",
           set_option_flag<&RunOptions::raw>},
          {"log_rate", 0, kValue, "N",
           "lines a second of each rank on the console; 0: all ({} on a terminal, else all)",
           run_values::log_rate,
           [](const Draft&) -> std::vector<std::string> {
             return {default_text(kTerminalLinesASecond)};
           }},
      },
  };
}

RunOptionGroup of_resources() {
  return {
      "CPUs and devices of a rank",
      {
          {"bind_core", 0, kValue, "True", "True: as --numa_binding exclusive (msrun)",
           run_values::bind_core},
          {"bind_to", 0, kValue, "WHAT", "numa, socket or l3cache: as --numa_binding (mpirun)",
           run_values::bind_to},
          {"virtual_local_rank", 0, kFlag, "",
           "each worker is LOCAL_RANK 0 and sees one device, the one of its rank",
           set_option_flag<&RunOptions::virtual_local_rank>},
          {"numa_binding", 0, kValue, "M",
           "CPUs of a rank: node or socket (its GPU's), exclusive (a share), core-complex (those "
           "of a cache)",
           run_values::numa_binding},
      },
  };
}

RunOptionGroup of_program() {
  return {
      "The program",
      {
          {"module", 'm', kFlag, "", "PROGRAM is a Python module: python3 -u -m PROGRAM",
           set_run_flag<&Draft::module>},
          {"no_python", 0, kFlag, "", "PROGRAM is executed even where its name ends in .py",
           set_run_flag<&Draft::no_python>},
          {"run_path", 0, kFlag, "", "PROGRAM is a Python script, run by runpy.run_path",
           set_run_flag<&Draft::run_path>},
          {"pass_local_rank", 0, kFlag, "",
           "its first argument is --local-rank=N: torch.distributed.launch without --use_env",
           set_option_flag<&RunOptions::pass_local_rank>},
          {"role", 0, kValue, "NAME", "ROLE_NAME of the workers ({})", set_text<&RunOptions::role>,
           shows_run<&RunOptions::role>},
          {"start_method", 0, kValue, "M", "taken and unused: workers are programs of their own",
           run_values::start_method},
      },
  };
}

RunOptionGroup others() {
  return {
      "Other",
      {
          {"help", 'h', kFlag, "", "print this", set_option_flag<&RunOptions::help>},
      },
  };
}

/// Words of other launchers that have no effect here, or are refused by their name.
RunOptionGroup unlisted() {
  return {
      "",
      {
          {"join", 0, kValue, "True", "", run_values::join},
          {"map_by", 0, kValue, "slot", "", run_values::map_by},
          {"rank_by", 0, kValue, "slot", "", run_values::map_by},
          {"mca", 0, OptionKind::kPair, "NAME VALUE", "", accept},
          {"gmca", 0, OptionKind::kPair, "NAME VALUE", "", accept},
          {"report_bindings", 0, kFlag, "", "", accept},
          {"display_map", 0, kFlag, "", "", accept},
          {"display_allocation", 0, kFlag, "", "", accept},
          {"tag_output", 0, kFlag, "", "", accept},
          {"allow_run_as_root", 0, kFlag, "", "", accept},
          {"use_env", 0, kFlag, "", "", accept},  // torch.distributed.launch's: LOCAL_RANK
          {"enable_tiered_parallel_tcpstore", 0, kValue, "B", "", run_values::true_or_false},
          {"logs_specs", 0, kValue, "L", "", run_values::default_logs},
          {"event_log_handler", 0, kValue, "H", "", run_values::null_events},
          {"worker_log_name", 0, kValue, "N", "", unsupported<kNoLogNames>},
          {"rank_table_file", 0, kValue, "F", "", unsupported<kNoTable>},
          {"hosts", 0, kValue, "H,H", "", unsupported<kHostsNotGiven>},
          {"ppn", 0, kValue, "N", "", unsupported<kRanksOfHosts>},
          {"perhost", 0, kValue, "N", "", unsupported<kRanksOfHosts>},
      },
  };
}

}  // namespace

const std::vector<RunOptionGroup>& run_option_groups() {
  static const std::vector<RunOptionGroup> kGroups = {
      of_ranks(),   of_rendezvous(), of_hosts(), of_failures(), of_output(),
      of_program(), of_resources(),  others(),   unlisted(),
  };
  return kGroups;
}

const std::vector<RunOption>& run_option_table() {
  static const std::vector<RunOption> kOptions = [] {
    std::vector<RunOption> all;
    for (const RunOptionGroup& group : run_option_groups()) {
      all.insert(all.end(), group.options.begin(), group.options.end());
    }
    return all;
  }();
  return kOptions;
}

void refuse_options(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

}  // namespace lockstep::inline internal
