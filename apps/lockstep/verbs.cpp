#include "apps/lockstep/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "apps/lockstep/ranks_here.h"
#include "lockstep/base/help_text.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/cli/commands.h"
#include "lockstep/launch/jobs/job_control.h"
#include "lockstep/version.h"

namespace lockstep::app {
namespace {

/// A mode of `program`, which its first word selects.
int execute_mode(const std::string& mode, const std::vector<std::string>& args,
                 const std::string& program = "lockstep-train") {
  std::vector<std::string> all = {mode};
  all.insert(all.end(), args.begin(), args.end());
  if (!execute_beside(program, all)) {
    throw Error(ErrorCode::kNotFound, "program " + program +
                                          " is neither beside lockstep nor in PATH; was this "
                                          "built without libtorch?");
  }
  return 0;
}

/// "  name     summary" lines, aligned.
std::string command_table(std::span<const Command> commands) {
  size_t width = 0;
  for (const Command& command : commands)
    width = std::max(width, std::string_view(command.name).size());
  std::string text;
  for (const Command& command : commands)
    text += fmt::format("  {:<{}}   {}\n", command.name, width, command.summary);
  return text;
}

}  // namespace

std::span<const Command> verbs() {
  static constexpr std::array kVerbs = {
      Command{"run", "start a program as the ranks of one job", verb_run},
      Command{"ps", "list the jobs that run on this host", verb_ps},
      Command{"stop", "end a job: lockstep stop ID|PID|--all", verb_stop},
      Command{"logs", "show the output of a job's ranks: lockstep logs [-f] [ID|PID]", verb_logs},
      Command{"train", "train a model by a YAML configuration", nullptr},
      Command{"eval", "evaluate a trained model: lockstep train --eval", verb_eval},
      Command{"plan", "how a run goes on with another number of ranks", verb_plan},
      Command{"predict", "classify pictures, read text in them", verb_predict},
      Command{"export", "write a trained network for other programs: ONNX, safetensors",
              verb_export},
      Command{"data", "get a data set: existing files, a download or synthetic data", nullptr},
      Command{"convert", "write MindOCR's label files for a published data set", nullptr},
      Command{"bench", "measure this machine: lockstep bench NAME", verb_bench},
      Command{"inspect", "show the last operations of a running or dead job", verb_inspect},
      Command{"env", "show which rank a program started like this would be, and why", verb_env},
      Command{"doctor", "whether hosts are fit for a job: lockstep doctor [--hosts H1,H2]",
              verb_doctor},
      Command{"ranktable", "make, merge or check Ascend rank tables", verb_ranktable},
      Command{"version", "print the version", verb_version},
      Command{"help", "print this", verb_help},
  };
  return kVerbs;
}

int dispatch(std::span<const Command> commands, const std::string& command, const std::string& what,
             const std::vector<std::string>& args) {
  const std::vector<std::string> rest(args.begin() + 1, args.end());
  const std::string& name = args[0];
  std::string prefix = command;
  std::replace(prefix.begin(), prefix.end(), ' ', '-');
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [&](const Command& each) { return each.name == name; });
  if (found != commands.end() && found->run != nullptr) return found->run(rest);
  const std::string program = prefix + "-" + name;
  const bool plain = !name.empty() && name[0] != '-' && name.find('/') == std::string::npos;
  if (plain) execute_beside(program, rest);
  if (found != commands.end()) {
    throw Error(ErrorCode::kNotFound, "program " + program + " is neither beside lockstep nor in " +
                                          "PATH; was this built without libtorch?");
  }
  std::vector<std::string> names;
  for (const Command& each : commands) names.emplace_back(each.name);
  throw Error(ErrorCode::kInvalidArgument, "unknown " + what + " '" + name + "'" +
                                               did_you_mean(name, names) + " (" + command +
                                               " --help lists them)");
}

int verb_run(const std::vector<std::string>& args) {
  return run_command(args);
}

int verb_ranktable(const std::vector<std::string>& args) {
  return rank_table_command(args);
}

int verb_ps(const std::vector<std::string>& args) {
  return ps_command(args, ranks_here);
}

int verb_stop(const std::vector<std::string>& args) {
  return stop_command(args, ranks_here);
}

int verb_logs(const std::vector<std::string>& args) {
  return logs_command(args, ranks_here);
}

int verb_eval(const std::vector<std::string>& args) {
  return execute_mode("--eval", args);
}

int verb_export(const std::vector<std::string>& args) {
  return execute_mode("--export", args);
}

int verb_plan(const std::vector<std::string>& args) {
  return execute_mode("--plan", args);
}

int verb_predict(const std::vector<std::string>& args) {
  return execute_mode("--predict", args, "lockstep-predict");
}

std::span<const Command> benchmarks() {
  static constexpr Command kBenchmarks[] = {
      {"collectives", "all_reduce and the like between processes", bench_collectives},
      {"ddp", "training step of DistributedDataParallel against independent processes", nullptr},
  };
  return kBenchmarks;
}

int verb_bench(const std::vector<std::string>& args) {
  const bool asked = !args.empty() && (args[0] == "--help" || args[0] == "-h");
  if (args.empty() || asked) {
    HelpPage page{{{"lockstep bench NAME [OPTIONS]", ""}}, "", {{"", {}}}, ""};
    for (const Command& each : benchmarks()) {
      page.groups[0].rows.push_back({each.name, each.summary});
    }
    page.groups.push_back({"", {{"-h, --help", "print this"}}});
    std::fputs(help_text(page).c_str(), asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  return dispatch(benchmarks(), "lockstep bench", "benchmark", args);
}

int verb_version(const std::vector<std::string>& args) {
  if (!args.empty() && (args[0] == "--help" || args[0] == "-h")) {
    std::printf("usage: lockstep version\n\nPrints the version.\n");
    return 0;
  }
  if (!args.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "lockstep version: unexpected word '" + args[0] + "'; it takes none");
  }
  std::printf("lockstep %s\n", version().c_str());
  return 0;
}

int verb_help(const std::vector<std::string>& args) {
  const bool names_verb = !args.empty() && !args[0].starts_with('-');
  const bool asked = !args.empty() && (args[0] == "--help" || args[0] == "-h");
  const size_t taken = names_verb || asked ? 1 : 0;
  if (args.size() > taken) {
    throw Error(ErrorCode::kInvalidArgument, "lockstep help: unexpected word '" + args[taken] +
                                                 "'; write lockstep help, or lockstep help VERB");
  }
  if (names_verb) return dispatch(verbs(), "lockstep", "verb", {args[0], "--help"});
  const std::string text = fmt::format(
      "lockstep {}: distributed training for libtorch\n\n"
      "usage: lockstep VERB [OPTIONS]\n\n{}\n"
      "lockstep VERB --help explains one of them.\n",
      version(), command_table(verbs()));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace lockstep::app
