#include "lockstep/launch/job/run_option_values.h"

#include <fmt/format.h>
#include <signal.h>

#include "lockstep/base/env.h"
#include "lockstep/base/exit_status.h"
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

/// torchrun's list: a comma that is part of a text is written twice.
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

}  // namespace

void nproc(Draft& draft, const Text& value, const Text& what) {
  draft.options.nproc_given = true;
  int& nproc = draft.options.nproc_per_node;
  if (value == "cpu" || value == "auto" || value == "gpu") {
    const Machine machine = (*draft.machine)();
    if (value == "gpu" && machine.gpus == 0) refuse_options(what + ": this host has no GPU");
    nproc = value == "gpu" || (value == "auto" && machine.gpus > 0) ? machine.gpus : machine.cores;
  } else if (!value.empty() && value.find_first_not_of("0123456789-") == Text::npos) {
    nproc = whole(value, 1, 1 << 16, what);
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
  draft.options.ending_signals.clear();
  draft.options.signals_named = true;
  for (const Text& name : split(value, ',')) {
    draft.options.ending_signals.insert(signal_number(name, what));
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

}  // namespace lockstep::run_values
