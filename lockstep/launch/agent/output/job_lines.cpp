#include "lockstep/launch/agent/output/job_lines.h"

namespace lockstep {
namespace {

const char* variable(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

}  // namespace

bool shows_raw(const RunOptions& options, const Environment& environment) {
  if (options.raw) return true;
  const bool one_rank = options.num_nodes == 1 && options.nproc_per_node == 1;
  return one_rank && !options.started_by_starter && !options.log_rate &&
         variable(environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE") == nullptr;
}

WorkerLinesOptions job_lines(const RunOptions& options, const Environment& environment,
                             const JobPlan& plan, const ConsoleKind& console,
                             const std::string& attempt_folder) {
  PrefixStyle style;
  style.first_rank = plan.ranks.first_rank;
  style.world_size = plan.world_size;
  if (plan.num_nodes > 1) style.host = plan.host;
  style.host_width = style.host.size();
  style.role = options.role;
  const char* pattern = variable(environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (pattern != nullptr) style.pattern = pattern;
  const bool raw = shows_raw(options, environment);
  style.none = raw;

  WorkerLinesOptions lines;
  lines.out = style;
  lines.err = style;
  const char* no_color = variable(environment, "NO_COLOR");
  const char* term = variable(environment, "TERM");
  lines.out.color = wants_color(console.out_terminal, no_color, term);
  lines.err.color = wants_color(console.err_terminal, no_color, term);
  lines.num_ranks = plan.ranks.local_size;
  lines.fold = !options.no_fold && !raw;
  lines.raw = raw && !options.started_by_starter;  // who starts hosts reads whole lines
  lines.console = console;
  lines.lines_a_second =
      options.log_rate.value_or(console.out_terminal ? kTerminalLinesASecond : 0);
  if (attempt_folder.empty()) return lines;
  lines.out_filters = options.stdout_filters;
  lines.err_filters = options.stderr_filters;
  lines.out_copies = attempt_folder + "/filtered_stdout.log";
  lines.err_copies = attempt_folder + "/filtered_stderr.log";
  return lines;
}

}  // namespace lockstep
