#include "lockstep/launch/job/run_option_values.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>

#include "lockstep/base/children.h"
#include "lockstep/base/env.h"
#include "lockstep/base/port_range.h"
#include "lockstep/base/text.h"

namespace lockstep::run_values {
namespace {

int whole(const Text& value, int lo, int hi, const Text& what) {
  return static_cast<int>(parse_int(value, lo, hi, what));
}

int signal_number(const Text& name, const Text& what) {
  static constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  Text list;
  for (const int signal : kSignals) {
    const Text full = signal_name(signal);
    if (name == full || "SIG" + name == full) return signal;
    list += (list.empty() ? "" : ", ") + full;
  }
  refuse_options(fmt::format("{}: '{}' is none of {}", what, name, list));
}

/// torchrun's list: a comma within a text is doubled.
std::vector<Text> filters_of(const Text& value, const Text& what) {
  std::vector<Text> filters(1);
  for (size_t i = 0; i < value.size(); ++i) {
    const bool comma = value[i] == ',';
    const bool twice = comma && i + 1 < value.size() && value[i + 1] == ',';
    if (comma && !twice) {
      filters.emplace_back();
      continue;
    }
    filters.back() += value[i];
    if (twice) ++i;
  }
  for (const Text& filter : filters) {
    if (filter.empty()) refuse_options(what + ": a text to look for is empty");
  }
  return filters;
}

bool is_true(const Text& value) {
  return value == "True" || value == "true" || value == "1";
}

bool is_false(const Text& value) {
  return value == "False" || value == "false" || value == "0";
}

void choose_binding(Draft& draft, CoreBinding binding, const Text& what) {
  CoreBinding& place = draft.options.core_binding;
  if (place != CoreBinding::kNone && place != binding) {
    refuse_options(what + ": the ranks' cores are already chosen in another way; give one");
  }
  place = binding;
}

}  // namespace

void nproc(Draft& draft, const Text& value, const Text& what) {
  draft.options.nproc_given = true;
  int& nproc = draft.options.nproc_per_node;
  if (value == "cpu" || value == "auto" || value == "gpu") {
    const HostResources resources = (*draft.resources)();
    if (value == "gpu" && resources.gpus == 0) refuse_options(what + ": this host has no GPU");
    nproc = value == "gpu" || (value == "auto" && resources.gpus > 0) ? resources.gpus
                                                                      : resources.cores;
  } else if (!value.empty() && value.find_first_not_of("0123456789-") == Text::npos) {
    nproc = whole(value, 1, 1 << 16, what);
  } else if (value == "xpu") {
    refuse_options(what +
                   ": 'xpu' is not supported: Intel GPUs are not counted; give their number");
  } else {
    refuse_options(
        fmt::format("{}: '{}' is neither a number of processes nor auto, cpu or gpu", what, value));
  }
}

void nnodes(Draft& draft, const Text& value, const Text& what) {
  const auto parts = split(value, ':');
  if (parts.size() > 2) {
    refuse_options(fmt::format("{}: '{}' is neither N nor MIN:MAX", what, value));
  }
  RunOptions& options = draft.options;
  draft.nnodes_given = true;
  options.min_nodes = whole(parts[0], 1, 1 << 20, what);
  options.num_nodes = whole(parts.back(), 1, 1 << 20, what);
  if (options.min_nodes > options.num_nodes) {
    refuse_options(fmt::format("{}: MIN {} is above MAX {}", what, parts[0], parts[1]));
  }
}

void node_rank(Draft& draft, const Text& value, const Text& what) {
  draft.options.node_rank = whole(value, 0, 1 << 20, what);
  draft.options.node_rank_given = true;
}

void master_addr(Draft& draft, const Text& value, const Text& what) {
  if (value.empty()) refuse_options(what + " is empty");
  draft.options.master_addr = value;
  draft.options.master_addr_given = true;
}

void master_port(Draft& draft, const Text& value, const Text& what) {
  draft.options.master_port = whole(value, 0, 65535, what);
  draft.master_port_given = true;
}

void port_range(Draft& draft, const Text& value, const Text& what) {
  parse_port_range(value, what);
  draft.options.port_range = value;
}

void backend(Draft& draft, const Text& value, const Text& what) {
  draft.options.rdzv_backend = parse_rendezvous_backend(value, what);
  draft.backend_given = true;
}

void conf(Draft& draft, const Text& value, const Text& what) {
  static_cast<RendezvousConf&>(draft.options) = parse_rendezvous_conf(value, what);
}

void run_id(Draft& draft, const Text& value, const Text& what) {
  if (value.find('/') != Text::npos || value == "." || value == "..") {
    refuse_options(fmt::format("{}: '{}' cannot name a folder", what, value));
  }
  draft.options.run_id = value;
}

void max_restarts(Draft& draft, const Text& value, const Text& what) {
  draft.options.max_restarts = whole(value, 0, 1 << 30, what);
}

void ranks_filter(Draft& draft, const Text& value, const Text& what) {
  draft.options.local_ranks_filter.clear();
  for (const Text& item : split(value, ',')) {
    draft.options.local_ranks_filter.insert(whole(item, 0, 1 << 16, what));
  }
}

void log_rate(Draft& draft, const Text& value, const Text& what) {
  draft.options.log_rate = whole(value, 0, 1 << 30, what);
}

void shutdown_timeout(Draft& draft, const Text& value, const Text& what) {
  draft.options.shutdown_timeout = parse_seconds(value, what);
}

void signals(Draft& draft, const Text& value, const Text& what) {
  RunOptions& options = draft.options;
  options.ending_signals.clear();
  options.signals_to_handle.clear();
  options.signals_named = true;
  for (const Text& name : split(value, ',')) {
    const int signal = signal_number(name, what);
    options.ending_signals.insert(signal);
    options.signals_to_handle +=
        (options.signals_to_handle.empty() ? "" : ",") + signal_name(signal);
  }
}

void stdout_filters(Draft& draft, const Text& value, const Text& what) {
  draft.options.stdout_filters = filters_of(value, what);
}

void stderr_filters(Draft& draft, const Text& value, const Text& what) {
  draft.options.stderr_filters = filters_of(value, what);
}

void seconds_only(Draft&, const Text& value, const Text& what) {
  parse_seconds(value, what);
}

void start_method(Draft&, const Text& value, const Text& what) {
  if (value == "spawn" || value == "fork" || value == "forkserver") return;
  refuse_options(fmt::format("{}: '{}' is none of spawn, fork, forkserver", what, value));
}

void default_logs(Draft&, const Text& value, const Text& what) {
  if (value == "default") return;
  refuse_options(fmt::format(
      "{}: '{}' is not supported: lines go to the console and, with --log_dir, to files", what,
      value));
}

void null_events(Draft&, const Text& value, const Text& what) {
  if (value == "null") return;
  refuse_options(
      fmt::format("{}: '{}' is not supported: events are lines on the console", what, value));
}

void total_ranks(Draft& draft, const Text& value, const Text& what) {
  draft.options.total_ranks = static_cast<int>(parse_int(value, 1, 1 << 20, what));
}

void local_worker_num(Draft& draft, const Text& value, const Text& what) {
  draft.local_worker_num = static_cast<int>(parse_int(value, 1, 1 << 16, what));
}

void exported(Draft& draft, const Text& value, const Text& what) {
  for (const Text& item : split(value, '\n')) {
    if (item.empty() || item[0] == '=') {
      refuse_options(fmt::format("{}: '{}' is neither NAME nor NAME=VALUE", what, item));
    }
    draft.options.exported.push_back(item);
  }
}

void cluster_time_out(Draft& draft, const Text& value, const Text& what) {
  const bool for_ever = !value.empty() && value[0] == '-';
  draft.options.join_timeout = parse_seconds(for_ever ? "1e9" : value, what);
}

void join(Draft&, const Text& value, const Text& what) {
  if (is_true(value)) return;
  refuse_options(what + " " + value + ": this always waits for its ranks; end the line with &");
}

void tail_worker_log(Draft& draft, const Text& value, const Text& what) {
  if (value != "-1") ranks_filter(draft, value, what);
}

void numa_binding(Draft& draft, const Text& value, const Text& what) {
  choose_binding(draft, parse_core_binding(value, what), what);
}

void bind_core(Draft& draft, const Text& value, const Text& what) {
  if (is_false(value)) return;
  if (!is_true(value)) {
    refuse_options(
        fmt::format("{}: '{}' is neither True nor False; for cores of your own choice "
                    "use taskset or numactl in front of the program",
                    what, value));
  }
  choose_binding(draft, CoreBinding::kExclusive, what);
}

void bind_to(Draft& draft, const Text& given, const Text& what) {
  const Text value = given.substr(0, given.find(':'));
  // mpirun binds each rank to a core by default, for single-threaded programs; here ranks have
  // several threads.
  if (value == "none" || value == "core" || value == "hwthread") return;
  if (value == "numa") return choose_binding(draft, CoreBinding::kNode, what);
  if (value == "socket" || value == "package") {
    return choose_binding(draft, CoreBinding::kSocket, what);
  }
  if (value == "l3cache") return choose_binding(draft, CoreBinding::kCoreComplex, what);
  refuse_options(
      fmt::format("{}: '{}' is none of none, numa, socket, l3cache; --numa_binding "
                  "exclusive gives each rank its share of the cores",
                  what, value));
}

void map_by(Draft& draft, const Text& value, const Text& what) {
  const auto parts = split(value, ':');
  if (parts[0] == "ppr" && parts.size() > 2 && parts[2] == "node") {
    return local_worker_num(draft, parts[1], what);
  }
  if (parts[0] == "ppr") {
    refuse_options(
        fmt::format("{}: '{}' is not supported: say how many ranks a host runs, as "
                    "ppr:N:node or --nproc_per_node N",
                    what, value));
  }
  // These set the order of ranks within a host; between hosts it is the same with all of them.
  static constexpr std::array kWithinHost = {"slot",    "core",    "hwthread", "numa",   "socket",
                                             "package", "l1cache", "l2cache",  "l3cache"};
  if (std::find(kWithinHost.begin(), kWithinHost.end(), parts[0]) != kWithinHost.end()) return;
  refuse_options(fmt::format(
      "{}: '{}' is not supported: ranks fill a host before they come to the next", what, value));
}

void true_or_false(Draft&, const Text& value, const Text& what) {
  if (is_true(value) || is_false(value)) return;
  refuse_options(fmt::format("{}: '{}' is neither true nor false", what, value));
}

}  // namespace lockstep::run_values
