#pragma once
// Functions that take the value of a single option of `lockstep run` (RunOption::Apply).

#include <string>

#include "lockstep/launch/job/run_option_table.h"

namespace lockstep::run_values {

using Draft = RunOptionsDraft;
using Text = std::string;

void nproc(Draft& draft, const Text& value, const Text& what);
void nnodes(Draft& draft, const Text& value, const Text& what);
void node_rank(Draft& draft, const Text& value, const Text& what);
void master_addr(Draft& draft, const Text& value, const Text& what);
void master_port(Draft& draft, const Text& value, const Text& what);
void port_range(Draft& draft, const Text& value, const Text& what);
void backend(Draft& draft, const Text& value, const Text& what);
void conf(Draft& draft, const Text& value, const Text& what);
void run_id(Draft& draft, const Text& value, const Text& what);
void max_restarts(Draft& draft, const Text& value, const Text& what);
void ranks_filter(Draft& draft, const Text& value, const Text& what);
void log_rate(Draft& draft, const Text& value, const Text& what);
void shutdown_timeout(Draft& draft, const Text& value, const Text& what);
/// "SIGTERM,USR1".
void signals(Draft& draft, const Text& value, const Text& what);

void total_ranks(Draft& draft, const Text& value, const Text& what);
void local_worker_num(Draft& draft, const Text& value, const Text& what);
void exported(Draft& draft, const Text& value, const Text& what);
/// msrun's: seconds; a negative number: for ever.
void cluster_time_out(Draft& draft, const Text& value, const Text& what);
/// msrun's; the command always waits for its ranks.
void join(Draft& draft, const Text& value, const Text& what);
/// msrun's: -1 means all ranks.
void tail_worker_log(Draft& draft, const Text& value, const Text& what);
/// torchrun's: a kind of binding.
void numa_binding(Draft& draft, const Text& value, const Text& what);
/// msrun's: True gives each rank its share of the cores.
void bind_core(Draft& draft, const Text& value, const Text& what);
/// mpirun's: none, numa, socket, l3cache.
void bind_to(Draft& draft, const Text& value, const Text& what);
/// mpirun's: how ranks are mapped to hosts.
void map_by(Draft& draft, const Text& value, const Text& what);

/// "a,b": texts; a comma within a text is doubled.
void stdout_filters(Draft& draft, const Text& value, const Text& what);
void stderr_filters(Draft& draft, const Text& value, const Text& what);

/// Options without an effect; their values are checked all the same.
void seconds_only(Draft& draft, const Text& value, const Text& what);
void start_method(Draft& draft, const Text& value, const Text& what);
void true_or_false(Draft& draft, const Text& value, const Text& what);
/// Options that choose a plug-in; only torchrun's own is accepted.
void default_logs(Draft& draft, const Text& value, const Text& what);
void null_events(Draft& draft, const Text& value, const Text& what);

}  // namespace lockstep::run_values
