#include "lockstep/train/program/command_line.h"

#include <cstdio>
#include <optional>

#include "lockstep/base/help_text.h"
#include "lockstep/base/options.h"
#include "lockstep/error.h"
#include "lockstep/train/config/config.h"
#include "lockstep/train/program/plugin.h"
#include "lockstep/train/rank_change.h"

namespace lockstep::inline internal {
namespace {

constexpr int64_t kMostRanks = 1 << 20;

struct PlanRequest {
  int from = 0, ranks = 0;
  std::string config;
  std::vector<std::string> overrides, plugins;
  bool help = false;
};

const OptionGroup<PlanRequest>& plan_options() {
  using R = PlanRequest;
  static const OptionGroup<R> kOptions = {
      "",
      {{"from", 0, OptionKind::kValue, "N", "ranks of the run so far (needed)",
        set_whole<&R::from, 1, kMostRanks>},
       {"ranks", 0, OptionKind::kValue, "N", "ranks from now on (needed)",
        set_whole<&R::ranks, 1, kMostRanks>},
       {"config", 'c', OptionKind::kValue, "FILE", "YAML file of the run, for numbers of its own",
        set_text<&R::config>},
       {"opt", 'o', OptionKind::kWords, "key.sub=value ...",
        "values that replace those of the file", add_text<&R::overrides>},
       plugin_option<R>(),
       help_option<R>()}};
  return kOptions;
}

HelpPage plan_help(const std::string& verb) {
  return {{{verb + " --from N --ranks N [-c FILE] [OPTIONS]", ""}},
          "Show how a run goes on with another number of ranks: as the same run, by virtual ranks; "
          "with the same batch, by accumulation; or as a smaller or larger one, with a learning "
          "rate by rule.",
          {help_group(plan_options())},
          ""};
}

}  // namespace

int run_plan_command(const std::vector<std::string>& words, const std::string& verb) {
  PlanRequest request;
  const auto rest = read_request(words, plan_options().options, verb, request);
  if (request.help) return print_help(plan_help(verb));
  refuse_rest(rest, names_of(plan_options().options), verb);
  if (request.from == 0 || request.ranks == 0) {
    throw Error(ErrorCode::kInvalidArgument, verb + ": --from N and --ranks N are needed");
  }
  load_plugins(request.plugins);
  std::optional<Config> config;
  if (!request.config.empty()) config = load_config(request.config, request.overrides);
  const auto text =
      describe_rank_change({request.from, request.ranks}, config ? &*config : nullptr);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace lockstep::inline internal
