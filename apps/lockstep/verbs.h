#pragma once
// The verbs of `lockstep`. To add one without libtorch: declare its function here, and give it a
// line in the table of verbs.cpp. A long one has a file verb_NAME.cpp. A verb with libtorch is a
// program lockstep-NAME in the same folder as lockstep. A line in the table gives it a place in the
// help.

#include <span>
#include <string>
#include <vector>

namespace lockstep::app {

/// A verb or benchmark; `args` are the words after its name. Returns the exit status.
using Body = int (*)(const std::vector<std::string>& args);

struct Command {
  const char* name;
  const char* summary;  ///< Half a line for the help.
  Body run;             ///< Null: the program lockstep-NAME does the work.
};

std::span<const Command> verbs();
std::span<const Command> benchmarks();  ///< The benchmarks of `lockstep bench`.

std::span<const Command> checks();  ///< The checks of `lockstep doctor`.

int bench_collectives(const std::vector<std::string>& args);
int doctor_backends(const std::vector<std::string>& args);
int verb_bench(const std::vector<std::string>& args);
int verb_inspect(const std::vector<std::string>& args);
int verb_env(const std::vector<std::string>& args);
int verb_doctor(const std::vector<std::string>& args);
int verb_eval(const std::vector<std::string>& args);
int verb_export(const std::vector<std::string>& args);
int verb_help(const std::vector<std::string>& args);
int verb_logs(const std::vector<std::string>& args);
int verb_plan(const std::vector<std::string>& args);
int verb_predict(const std::vector<std::string>& args);
int verb_ps(const std::vector<std::string>& args);
int verb_ranktable(const std::vector<std::string>& args);
int verb_run(const std::vector<std::string>& args);
int verb_stop(const std::vector<std::string>& args);
int verb_version(const std::vector<std::string>& args);

/// Replaces this process by PROGRAM (beside this binary, else in PATH) with `args`. Returns false
/// if there is no such program. Errors: kIo if it exists but cannot be run.
bool execute_beside(const std::string& program, const std::vector<std::string>& args);

/// Runs args[0] of `commands`: built in, else a program ("lockstep bench" and "x" make
/// lockstep-bench-x), else an error that names the nearest one (kInvalidArgument). `command` is the
/// user's text before the name; `what` is "verb" or "benchmark".
int dispatch(std::span<const Command> commands, const std::string& command, const std::string& what,
             const std::vector<std::string>& args);

}  // namespace lockstep::app
