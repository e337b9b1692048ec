#pragma once
// What single options of `lockstep run` do with their values (RunOption::Apply).

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
/// msrun's: seconds; below 0: for ever.
void cluster_time_out(Draft& draft, const Text& value, const Text& what);
/// msrun's: this always waits for its ranks.
void join(Draft& draft, const Text& value, const Text& what);
/// msrun's: -1 are all.
void tail_worker_log(Draft& draft, const Text& value, const Text& what);
/// torchrun's: a kind of binding.
void numa_binding(Draft& draft, const Text& value, const Text& what);
/// msrun's: True gives each rank its share of the cores.
void bind_core(Draft& draft, const Text& value, const Text& what);
/// mpirun's: none, numa, socket, l3cache.
void bind_to(Draft& draft, const Text& value, const Text& what);
/// mpirun's: how ranks are dealt out to hosts.
void map_by(Draft& draft, const Text& value, const Text& what);

/// "a,b": texts, a comma in one is written twice.
void stdout_filters(Draft& draft, const Text& value, const Text& what);
void stderr_filters(Draft& draft, const Text& value, const Text& what);

/// Taken and without a meaning here: checked, so that a mistake is not.
void seconds_only(Draft& draft, const Text& value, const Text& what);
void start_method(Draft& draft, const Text& value, const Text& what);
void true_or_false(Draft& draft, const Text& value, const Text& what);
/// Options that choose a plug-in: torchrun's own is the only one.
void default_logs(Draft& draft, const Text& value, const Text& what);
void null_events(Draft& draft, const Text& value, const Text& what);

}  // namespace lockstep::run_values
