#include "lockstep/launch/agent/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/agent/run_option_table.h"

namespace lockstep {
namespace {

struct Given {
  std::string value;
  std::string what;  ///< "--nnodes" as the user wrote it, or "PET_NNODES".
};
using GivenOptions = std::map<std::string_view, Given>;

const RunOption& find_option(const std::string& word) {
  std::string name = word.substr(word.rfind("--", 0) == 0 ? 2 : 1);
  const bool letter = word.rfind("--", 0) != 0;
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> names;
  for (const RunOption& option : run_option_table()) {
    if (letter ? name.size() == 1 && option.letter == name[0] : option.name == name) return option;
    names.push_back("--" + std::string(option.name));
  }
  std::string nearest = did_you_mean("--" + name, names);
  for (size_t i = 0; nearest.empty() && name.size() > 2 && i < names.size(); ++i) {
    if (names[i].rfind("--" + name, 0) == 0) nearest = ", did you mean '" + names[i] + "'?";
  }
  refuse_options(
      fmt::format("unknown option {}{} (lockstep run --help lists them)", word, nearest));
}

/// Consumes the option at words[i] with its value; returns the index after it.
size_t read_option(const std::vector<std::string>& words, size_t i, GivenOptions* given) {
  const std::string& word = words[i];
  const bool is_long = word.rfind("--", 0) == 0;
  const size_t equals = is_long ? word.find('=') : std::string::npos;
  const std::string what = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const RunOption& option = find_option(what);
  const bool attached = is_long ? equals != std::string::npos : word.size() > 2;
  if (option.kind == OptionKind::kFlag) {
    if (attached) refuse_options(fmt::format("{} takes no value", what));
    (*given)[option.name] = {"1", what};
    return i + 1;
  }
  if (attached) {
    const size_t cut = is_long ? equals + 1 : (word[2] == '=' ? 3 : 2);
    (*given)[option.name] = {word.substr(cut), what};
    return i + 1;
  }
  if (i + 1 == words.size() || words[i + 1] == "--") {
    refuse_options(fmt::format("{} needs a value ({})", what, option.metavar));
  }
  (*given)[option.name] = {words[i + 1], what};
  return i + 2;
}

/// PET_NAME variables, for options that the command line does not give. Flags are 0 or 1.
void read_variables(const Environment& environment, GivenOptions* given) {
  for (const RunOption& option : run_option_table()) {
    std::string name = "PET_" + std::string(option.name);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty() || option.name == "help") continue;
    if (option.kind == OptionKind::kFlag && parse_int(found->second, 0, 1, name) == 0) continue;
    given->try_emplace(option.name, Given{found->second, name});
  }
}

void use_endpoint(RunOptionsDraft* draft) {
  if (draft->rdzv_endpoint.empty()) return;
  if (draft->master_given)
    refuse_options("--rdzv_endpoint and --master_addr say the same; give one");
  draft->options.rdzv_endpoint = draft->rdzv_endpoint;
  const Endpoint endpoint = parse_endpoint(draft->rdzv_endpoint, 0);
  draft->options.master_addr = endpoint.host;
  draft->options.master_port = endpoint.port;
}

/// What only the options together can tell.
void check_together(const RunOptionsDraft& draft) {
  const RunOptions& options = draft.options;
  if (options.node_rank >= options.num_nodes) {
    refuse_options(fmt::format("--node_rank {} must be below --nnodes {}", options.node_rank,
                               options.num_nodes));
  }
  if (draft.standalone && options.num_nodes > 1) {
    refuse_options(fmt::format("--standalone is one node, --nnodes says {}", options.num_nodes));
  }
  if (options.log_dir.empty() && (options.redirects.any() || options.tee.any())) {
    refuse_options(
        fmt::format("--{} writes files: say where with --log_dir DIR (without files, every "
                    "line goes to the console)",
                    options.redirects.any() ? "redirects" : "tee"));
  }
  const int highest =
      std::max({options.redirects.highest(), options.tee.highest(),
                options.local_ranks_filter.empty() ? -1 : *options.local_ranks_filter.rbegin()});
  if (highest >= options.nproc_per_node) {
    refuse_options(
        fmt::format("there is no local rank {} to choose the output of: --nproc_per_node is {}",
                    highest, options.nproc_per_node));
  }
}

RunOptions finish(RunOptionsDraft draft) {
  use_endpoint(&draft);
  RunOptions& options = draft.options;
  if (options.help) return options;
  if (options.command.empty()) {
    refuse_options("no program given: lockstep run [OPTIONS] [--] PROGRAM [ARGS]");
  }
  check_together(draft);
  if (options.num_nodes > 1 && options.master_port == 0) options.master_port = 29500;
  if (!options.log_dir.empty() && !draft.streams_given) {
    options.tee = StreamMap::parse("3", "--tee");
  }
  return options;
}

}  // namespace

RunOptions parse_run_options(const std::vector<std::string>& words, const Environment& environment,
                             const Machine& machine) {
  GivenOptions given;
  size_t next = 0;
  while (next < words.size() && words[next].size() > 1 && words[next][0] == '-' &&
         words[next] != "--") {
    next = read_option(words, next, &given);
  }
  if (next < words.size() && words[next] == "--") ++next;
  read_variables(environment, &given);
  if (const auto grace = environment.find("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
      grace != environment.end() && !grace->second.empty()) {
    given.try_emplace("shutdown_timeout", Given{grace->second, grace->first});
  }
  RunOptionsDraft draft;
  draft.machine = &machine;
  for (const RunOption& option : run_option_table()) {
    const auto found = given.find(option.name);
    if (found != given.end()) option.apply(draft, found->second.value, found->second.what);
  }
  draft.options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return finish(std::move(draft));
}

std::string run_options_help() {
  std::string text =
      "usage: lockstep run [OPTIONS] [--] PROGRAM [ARGS]\n\n"
      "Starts PROGRAM --nproc_per_node times, as the ranks of one job, and ends when all have\n"
      "ended, with the exit code of the first that failed.\n\n";
  for (const RunOption& option : run_option_table()) {
    if (option.help.empty()) continue;
    std::string left = option.letter == 0 ? "    " : fmt::format("-{}, ", option.letter);
    left += fmt::format("--{} {}", option.name, option.metavar);
    text += fmt::format("  {:<31} {}\n", left, option.help);
  }
  text +=
      "\nNames may be written with - or _. PET_NAME in the environment is the default of --name.\n"
      "Several nodes not all on this host: set LOCKSTEP_SECRET to the same text on each.\n";
  return text;
}

}  // namespace lockstep
