#include "lockstep/train/program/command_line.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/nn/functional/pooling.h>
#include <torch/utils.h>

#include <algorithm>
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
#include "lockstep/train/config/dictionaries.h"
#include "lockstep/train/config/own_parts.h"
#include "lockstep/train/part_makers.h"
#include "lockstep/train/program/plugin.h"
#include "lockstep/train/run/run.h"
#include "lockstep/world/environment.h"

namespace lockstep::inline internal {
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

const OptionGroup<TrainRequest>& train_options() {
  using R = TrainRequest;
  static const OptionGroup<R> kOptions = {
      "",
      {{"config", 'c', OptionKind::kValue, "FILE",
        "YAML file, or the name of an installed one, e.g. cls/resnet/resnet18_cifar10.yaml "
        "(needed)",
        set_text<&R::config>},
       {"opt", 'o', OptionKind::kWords, "key.sub=value ...",
        "values that replace those of the file", add_text<&R::overrides>},
       {"check", 0, OptionKind::kFlag, "",
        "only check the file; print configuration and summary of the run (not with --eval)",
        set_flag<&R::check>},
       {"eval", 0, OptionKind::kFlag, "",
        "only evaluate the best checkpoint (or eval.ckpt_load_path) (not with --check)",
        set_flag<&R::eval>},
       {"find_lr", 0, OptionKind::kValue, "STEPS",
        "only search for a learning rate: train so many steps with a rate that rises, and print "
        "its losses and a suggestion; e.g. 100",
        set_whole<&R::find_lr, 10, kMostSearchSteps>},
       plugin_option<R>(),
       {"list", 0, OptionKind::kFlag, "",
        "only print what a file can name: tasks, networks, backbones, losses, metrics, datasets, "
        "transforms, optimizers, schedules and callbacks, or the kind that follows, each with its "
        "settings",
        set_flag<&R::lists>},
       help_option<R>()}};
  return kOptions;
}

/// Those of train, but for others of its modes. The first word, --eval, is read as an option.
const OptionGroup<TrainRequest>& eval_options() {
  static const auto kOptions = [] {
    auto group = train_options();
    std::erase_if(group.options,
                  [](const auto& each) { return each.name == "check" || each.name == "find_lr"; });
    for (auto& each : group.options) {
      if (each.name == "eval") each.help = "";
    }
    return group;
  }();
  return kOptions;
}

/// A verb of `lockstep` is this program with a first word.
struct Mode {
  std::string_view word;
  std::string_view verb;
  /// Gets the words behind the first. Null: those of train and eval are read here.
  VerbCommand run;
};

const Mode kTrain = {"", "train", nullptr};

/// Set once, before any of them is looked for.
std::vector<Mode>& other_modes() {
  static std::vector<Mode> modes = {{"--eval", "eval", nullptr},
                                    {"--plan", "plan", run_plan_command},
                                    {"--export", "export", run_export_command}};
  return modes;
}

const Mode& mode_of(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const auto found = std::find_if(other_modes().begin(), other_modes().end(),
                                  [&](const Mode& mode) { return mode.word == first; });
  return found == other_modes().end() ? kTrain : *found;
}

bool is_eval(const Mode& mode) {
  return mode.verb == "eval";
}

/// Empty: the ready one.
std::string own_program(int argc, char** argv) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename() : "";
  return program == "lockstep-train" || program == "lockstep-predict" ? "" : program;
}

/// As the user typed it.
std::string verb_of(int argc, char** argv) {
  const Mode& mode = mode_of(argc, argv);
  const std::string program = own_program(argc, argv);
  if (program.empty()) return fmt::format("lockstep {}", mode.verb);
  return mode.word.empty() ? program : fmt::format("{} {}", program, mode.word);
}

HelpPage train_help(int argc, char** argv) {
  const bool evaluates = is_eval(mode_of(argc, argv));
  return {{{verb_of(argc, argv) + " -c FILE [OPTIONS]", ""}},
          evaluates ? "Evaluate the model that a YAML file describes: its best checkpoint, or "
                      "eval.ckpt_load_path."
                    : "Train a model described by a YAML file.",
          {help_group(evaluates ? eval_options() : train_options())},
          evaluates || own_program(argc, argv).empty()
              ? ""
              : "With --eval, --plan, --predict or --export as its first word the program is that "
                "verb of lockstep; --help behind it shows its options."};
}

/// Errors: kInvalidArgument for a verb without its dashes.
void refuse_verb(const std::vector<std::string>& rest, const std::string& verb) {
  for (const Mode& mode : other_modes()) {
    if (rest.empty() || rest.front() != mode.verb) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: unexpected word '{}', did you mean '{}' as the first word?", verb,
                            mode.verb, mode.word));
  }
}

TrainRequest read_train_request(const std::vector<std::string>& words,
                                const std::vector<Option<TrainRequest>>& options,
                                const std::string& verb) {
  TrainRequest request;
  auto rest = read_request(words, options, verb, request);
  if (request.help) return request;
  if (request.lists) {
    if (rest.size() > 1) refuse_rest({rest[1]}, names_of(options), verb);
    if (!rest.empty()) request.list = rest[0];
    return request;
  }
  refuse_verb(rest, verb);
  refuse_rest(rest, names_of(options), verb);
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
  register_built_in_parts();
  const std::string verb = verb_of(argc, argv);
  const Mode& mode = mode_of(argc, argv);
  if (mode.run != nullptr) return mode.run({argv + 2, argv + argc}, verb);
  const auto& options = is_eval(mode) ? eval_options() : train_options();
  const auto request = read_train_request({argv + 1, argv + argc}, options.options, verb);
  if (request.help) return print_help(train_help(argc, argv));
  load_plugins(request.plugins);
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
  return train_as_configured(config, world);
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

/// Sets OpenMP's threads alone: torch::set_num_threads() would start those of another pool at once.
void set_openmp_threads(int count) {
  using Set = void (*)(int);
  if (const auto set = reinterpret_cast<Set>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    set(count);
  }
}

/// Runs a small computation, forward and backward, so that libraries are loaded and set up for
/// later ones. This also holds in processes forked from this one (start_fork_server()). Starts no
/// threads and draws no random numbers. Cost: some ten milliseconds, once.
void warm_up() {
  namespace fn = torch::nn::functional;
  // A process with a second thread cannot be forked.
  const int threads = torch::get_num_threads();
  set_openmp_threads(1);
  const auto images = torch::ones({2, 3, 8, 8});
  const auto kernel = torch::ones({4, 3, 3, 3}, torch::requires_grad());
  const auto scale = torch::ones({4}, torch::requires_grad());
  const auto head = torch::ones({10, 4}, torch::requires_grad());
  auto x = torch::conv2d(images, kernel, {}, 1, 1);
  x = torch::batch_norm(x, scale, scale, {}, {}, true, 0.1, 1e-5, false);
  x = fn::adaptive_avg_pool2d(torch::relu(x), fn::AdaptiveAvgPool2dFuncOptions(1)).flatten(1);
  const auto logits = torch::linear(x, head);
  torch::cross_entropy_loss(logits, torch::zeros({2}, torch::kLong)).backward();
  torch::NoGradGuard no_grad;
  head.sub_(head.grad(), 0.1);
  set_openmp_threads(threads);
}

}  // namespace

int command_line_main(int argc, char** argv, VerbCommand predict) {
  if (predict != nullptr) other_modes().push_back({"--predict", "predict", predict});
  start_fork_server(warm_up);
  end_without_teardown();
  return run_main(verb_of(argc, argv), run_in_any_generation, argc, argv);
}

}  // namespace lockstep::inline internal
