#include "lockstep/launch/cli/commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "lockstep/base/counted.h"
#include "lockstep/base/descriptors.h"
#include "lockstep/base/env.h"
#include "lockstep/base/log.h"
#include "lockstep/error.h"
#include "lockstep/launch/agent/agent.h"
#include "lockstep/launch/agent/munge_secret.h"
#include "lockstep/launch/agent/worker_command.h"
#include "lockstep/launch/job/host_resources.h"
#include "lockstep/launch/process/console.h"
#include "lockstep/launch/process/program.h"
#include "lockstep/launch/process/signals.h"
#include "lockstep/launch/rendezvous/rendezvous.h"
#include "lockstep/launch/start/host_slots.h"
#include "lockstep/launch/start/remote_agent.h"
#include "lockstep/launch/start/starter.h"
#include "lockstep/world/join/this_process.h"
#include "lockstep/world/secret.h"

namespace lockstep::inline internal {
namespace {

/// A pipe must never get the number of a standard stream that the caller closed.
void open_standard_streams() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

bool wants_files(const RunOptions& options) {
  return options.redirects.any() || options.tee.any() || !options.stdout_filters.empty() ||
         !options.stderr_filters.empty();
}

/// As torchrun: output for files goes to a temporary folder, whose name is logged.
std::string make_log_dir() {
  std::string folder = env_or("TMPDIR", "/tmp") + "/lockstep_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) throw io_error("make folder " + folder);
  log_info("no --log_dir is given; output goes to " + folder);
  return folder;
}

int report_problem(int exit_code, const std::string& problem) {
  std::fprintf(stderr, "lockstep run: error: %s\n", problem.c_str());
  return exit_code;
}

/// The starter has turned its PET_ variables into options already; they are not read twice.
Environment without_defaults(Environment environment) {
  for (auto it = environment.begin(); it != environment.end();) {
    it = it->first.rfind("PET_", 0) == 0 ? environment.erase(it) : std::next(it);
  }
  return environment;
}

/// `by_munge`: used if it is not empty.
std::string secret_for(const RunOptions& options, const std::string& by_munge) {
  if (!by_munge.empty()) return by_munge;
  return options.num_nodes == 1 ? secret_of_environment() : secret_of_agents(options.wire);
}

int run_words(const std::vector<std::string>& words, bool started_by_starter) {
  Environment environment = this_environment();
  RunOptions options =
      parse_run_options(words, started_by_starter ? without_defaults(environment) : environment,
                        [&] { return resources_of_host(environment); });
  if (options.help) {
    std::fputs(run_options_help().c_str(), stdout);
    return 0;
  }
  if (!options.work_folder.empty() && ::chdir(options.work_folder.c_str()) != 0) {
    return report_problem(
        2, "--wdir: cannot go to " + options.work_folder + ": " + std::strerror(errno));
  }
  if (!options.hosts.empty() || !options.host_file.empty()) {
    return start_on_hosts(options, words, environment);
  }
  std::optional<Identity> step;
  if (!started_by_starter) step = take_hosts_of_step(inputs_from(environment), &options);
  for (const auto& [name, value] : exported_variables(options, environment))
    environment[name] = value;
  if (!options.port_range.empty()) ::setenv("LOCKSTEP_PORT_RANGE", options.port_range.c_str(), 1);
  options.started_by_starter = started_by_starter;
  const std::string script = python_script(options);
  if (!script.empty() && ::access(script.c_str(), R_OK) != 0) {
    return report_problem(127, "cannot read script " + script + ": " + std::strerror(errno));
  }
  options.program = program_name(options);
  options.program_and_arguments = program_and_arguments(options);
  options.command = worker_command(options, environment);
  const Program program = find_program(options.command[0], program_search_path());
  if (program.exit_code != 0) return report_problem(program.exit_code, program.problem);
  if (options.core_binding != CoreBinding::kNone) {
    options.cpus_of_ranks = cpus_of_ranks(read_cpu_topology("", usable_cpus(), environment),
                                          options.core_binding, options.nproc_per_node);
  }
  if (options.log_dir.empty() && wants_files(options)) options.log_dir = make_log_dir();
  // Per worker: its handle, two pipes' ends for a moment, a client of the store, and files.
  const size_t each = wants_files(options) ? 6 : 4;
  check_descriptors(each * static_cast<size_t>(options.nproc_per_node),
                    counted(options.nproc_per_node, "rank"));
  // The rendezvous' threads log too: from here on no thread waits for a reader of the log.
  Console console(console_kind());
  const ConsoleLog log_there(&console);
  MungeSecret by_munge;
  if (step) by_munge = secret_by_munge(*step, options, Deadline::after(options.join_timeout));
  const auto rendezvous = make_rendezvous(options, secret_for(options, by_munge.secret));
  try {
    Agent agent(options, environment, rendezvous.get(), &console, program.path);
    return agent.run();
  } catch (const ExecError& error) {
    return report_problem(126, error.what());
  }
}

}  // namespace

int run_command(const std::vector<std::string>& words) {
  open_standard_streams();
  raise_soft_descriptor_limit();
  end_as_init(RunOptions::default_ending_signals());
  if (words != std::vector<std::string>{kStartedWord}) return run_words(words, false);
  return run_from_starter([](const auto& given) { return run_words(given, true); });
}

}  // namespace lockstep::inline internal
