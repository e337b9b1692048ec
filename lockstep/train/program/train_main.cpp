// The command line of `lockstep train`, also of programs that register parts of their own.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/help_text.h"
#include "lockstep/base/log.h"
#include "lockstep/base/options.h"
#include "lockstep/base/quick_end.h"
#include "lockstep/error.h"
#include "lockstep/spawn.h"
#include "lockstep/train.h"
#include "lockstep/train/config/dictionaries.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/program/plan_command.h"
#include "lockstep/train/program/plugin.h"
#include "lockstep/train/run.h"
#include "lockstep/train/warm_up.h"
#include "lockstep/world/environment.h"

namespace lockstep {
namespace {

constexpr int64_t kMostSearchSteps = 1 << 20;

struct TrainRequest {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::string> plugins;
  std::string list;
  int64_t find_lr = 0;
  bool lists = false, check = false, eval = false, help = false;
};

template <auto kMember>
constexpr auto add_text = [](TrainRequest& request, const std::string& value, const std::string&) {
  (request.*kMember).push_back(value);
};

const OptionGroup<TrainRequest>& train_options() {
  using R = TrainRequest;
  static const OptionGroup<R> kOptions = {
      "",
      {{"config", 'c', OptionKind::kValue, "FILE",
        "YAML file, e.g. configs/cls/resnet/...yaml (needed)", set_text<&R::config>},
       {"opt", 'o', OptionKind::kWords, "key.sub=value ...",
        "values that replace those of the file", add_text<&R::overrides>},
       {"check", 0, OptionKind::kFlag, "",
        "only check the file; print configuration and plan of the run (not with --eval)",
        set_flag<&R::check>},
       {"eval", 0, OptionKind::kFlag, "",
        "only evaluate the best checkpoint (or eval.ckpt_load_path) (not with --check)",
        set_flag<&R::eval>},
       {"find_lr", 0, OptionKind::kValue, "STEPS",
        "only search for a learning rate: train so many steps with a rate that rises, and print "
        "its losses and a suggestion; e.g. 100",
        set_whole<&R::find_lr, 10, kMostSearchSteps>},
       {"plugin", 0, OptionKind::kList, "FILE",
        "a shared library with networks, losses and other parts of one's own; see "
        "docs/guide/own_parts.md",
        add_text<&R::plugins>},
       {"list", 0, OptionKind::kFlag, "",
        "only print what a file can name: networks, losses, metrics, datasets, optimizers, "
        "schedules and callbacks, or the kind that follows, each with its settings",
        set_flag<&R::lists>},
       help_option<R>()}};
  return kOptions;
}

HelpPage train_help(const std::string& verb, bool evaluates) {
  return {{{verb + " -c FILE [OPTIONS]", ""}},
          evaluates ? "Evaluate the model that a YAML file describes."
                    : "Train a model described by a YAML file.",
          {help_group(train_options())},
          ""};
}

/// `lockstep eval` runs this program with --eval as its first word.
bool is_eval(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "--eval";
}

/// `lockstep plan` runs it with --plan.
bool is_plan(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "--plan";
}

/// As the user typed it.
std::string verb_of(int argc, char** argv) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename() : "";
  const bool ready = program.empty() || program == "lockstep-train";
  if (is_plan(argc, argv)) return ready ? "lockstep plan" : program + " --plan";
  if (is_eval(argc, argv)) return ready ? "lockstep eval" : program + " --eval";
  return ready ? "lockstep train" : program;
}

TrainRequest read_train_request(const std::vector<std::string>& words, const std::string& verb) {
  TrainRequest request;
  auto rest = read_request(words, train_options().options, verb, request);
  if (request.help) return request;
  if (request.lists) {
    if (rest.size() > 1) refuse_rest({rest[1]}, names_of(train_options().options), verb);
    if (!rest.empty()) request.list = rest[0];
    return request;
  }
  refuse_rest(rest, names_of(train_options().options), verb);
  if (request.check && request.eval) {
    throw Error(ErrorCode::kInvalidArgument, verb + ": --check does not go with --eval");
  }
  if (request.find_lr > 0 && (request.check || request.eval)) {
    throw Error(ErrorCode::kInvalidArgument,
                verb + ": --find-lr does not go with --check or --eval");
  }
  if (request.config.empty()) {
    throw Error(ErrorCode::kInvalidArgument, verb + ": -c, --config FILE is needed");
  }
  return request;
}

int run(int argc, char** argv) {
  const std::string verb = verb_of(argc, argv);
  if (is_plan(argc, argv)) return run_plan_command({argv + 2, argv + argc}, verb);
  const auto request = read_train_request({argv + 1, argv + argc}, verb);
  if (request.help) return print_help(train_help(verb, is_eval(argc, argv)));
  for (const auto& plugin : request.plugins) load_plugin(plugin);
  if (request.lists) {
    std::fputs(list_parts(request.list).c_str(), stdout);
    return 0;
  }
  const auto config = load_config(request.config, request.overrides);
  check_dictionaries(config);
  const auto world = World::join();
  if (world.size > 1) set_log_name("rank " + std::to_string(world.rank));
  if (request.check) return run_check(config, world);
  if (request.eval) return run_evaluation(config, world);
  if (request.find_lr > 0) return run_find_lr(config, world, request.find_lr);
  return run_training(config, world);
}

/// In a later generation the arguments were valid once already, so exit code 2 would be wrong.
int run_in_any_generation(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    if (exit_status(error) != 2 || !is_later_generation(this_environment())) throw;
    throw Error(ErrorCode::kUnavailable, error.what());
  }
}

}  // namespace

int train_main(int argc, char** argv) {
  warm_start(warm_up);
  end_without_teardown();
  return run_main(verb_of(argc, argv), run_in_any_generation, argc, argv);
}

}  // namespace lockstep
