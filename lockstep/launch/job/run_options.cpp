#include "lockstep/launch/job/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/env.h"
#include "lockstep/base/help_text.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/job/run_option_table.h"

namespace lockstep::inline internal {
namespace {

Streams parse_streams(const std::string& text, const std::string& what) {
  const auto bits = parse_int(text, 0, 3, what + " (0 none, 1 stdout, 2 stderr, 3 both)");
  return {(bits & 1) != 0, (bits & 2) != 0};
}

struct Given {
  std::string value;
  std::string what;  ///< "--nnodes" as the user wrote it, or "PET_NNODES".
};
using GivenOptions = std::map<std::string_view, Given>;

/// The variable that torchrun reads besides the PET_ ones, and its option. It does not read
/// TORCHELASTIC_SIGNALS_TO_HANDLE but sets it.
constexpr char kOtherVariable[] = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
constexpr std::string_view kItsOption = "shutdown_timeout";

/// Of the option that stands there twice the last value counts, but of a list all.
void give(const GivenOption& option, GivenOptions* given) {
  static const auto kLists = [] {
    std::set<std::string_view> names;
    for (const RunOption& each : run_option_table()) {
      if (each.kind == OptionKind::kList) names.insert(each.name);
    }
    return names;
  }();
  Given& place = (*given)[option.name];
  const bool more = kLists.count(option.name) > 0 && !place.what.empty();
  place = {more ? place.value + "\n" + option.value : option.value, option.what};
}

/// PET_NAME variables, for options that the command line lacks. Flags are 0 or 1.
void read_variables(const Environment& environment, GivenOptions* given) {
  for (const RunOption& option : run_option_table()) {
    std::string name = "PET_" + std::string(option.name);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty() || option.name == "help") continue;
    if (option.name == "logs_specs" || option.name == "numa_binding") continue;  // as torchrun
    if (option.kind == OptionKind::kPair) continue;
    if (option.kind == OptionKind::kFlag && parse_int(found->second, 0, 1, name) == 0) continue;
    given->try_emplace(option.name, Given{found->second, name});
  }
}

struct ReadWords {
  GivenOptions given;
  std::vector<std::string> command;
};

ReadWords read_words(const std::vector<std::string>& words, const Environment& environment) {
  ReadWords read;
  GivenWords given = read_option_words(words, names_of(run_option_table()), "lockstep run",
                                       OptionsEnd::kAtFirstWord);
  for (const GivenOption& option : given.options) give(option, &read.given);
  read.command = std::move(given.rest);
  read_variables(environment, &read.given);
  const std::string other = value_in(environment, kOtherVariable);
  if (!other.empty()) read.given.try_emplace(kItsOption, Given{other, kOtherVariable});
  return read;
}

}  // namespace

StreamMap StreamMap::parse(const std::string& text, const std::string& what) {
  StreamMap map;
  if (text.find(':') == std::string::npos) {
    map.all_ = parse_streams(text, what);
    return map;
  }
  for (const std::string& item : split(text, ',')) {
    const auto parts = split(item, ':');
    if (parts.size() != 2) {
      throw Error(ErrorCode::kInvalidArgument,
                  what + ": '" + item + "' is not LOCAL_RANK:0|1|2|3, as in 0:3,1:2");
    }
    const int rank = static_cast<int>(parse_int(parts[0], 0, 1 << 20, what + ", local rank"));
    if (!map.by_rank_.emplace(rank, parse_streams(parts[1], what)).second) {
      throw Error(ErrorCode::kInvalidArgument, what + ": local rank " + parts[0] + " twice");
    }
  }
  return map;
}

Streams StreamMap::of(int local_rank) const {
  if (by_rank_.empty()) return all_;
  const auto found = by_rank_.find(local_rank);
  return found == by_rank_.end() ? Streams{} : found->second;
}

bool StreamMap::any() const {
  return all_.any() || std::any_of(by_rank_.begin(), by_rank_.end(),
                                   [](const auto& entry) { return entry.second.any(); });
}

RunOptions parse_run_options(const std::vector<std::string>& words, const Environment& environment,
                             const std::function<HostResources()>& resources) {
  const ReadWords read = read_words(words, environment);
  RunOptionsDraft draft;
  draft.resources = &resources;
  draft.options.wire = wire_of(environment);
  draft.options.share_torch_store =
      value_in(environment, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE") != "1";
  for (const RunOption& option : run_option_table()) {
    const auto found = read.given.find(option.name);
    if (found != read.given.end()) option.apply(draft, found->second.value, found->second.what);
  }
  draft.options.command = read.command;
  return put_together(std::move(draft));
}

std::vector<std::string> words_for_agent(const std::vector<std::string>& words,
                                         const Environment& environment) {
  static const std::set<std::string_view> kOfTheStarter = {"np",
                                                           "host",
                                                           "hostfile",
                                                           "rsh",
                                                           "export",
                                                           "oversubscribe",
                                                           "worker_num",
                                                           "join",
                                                           "machinefile",
                                                           "nproc_per_node",
                                                           "local_worker_num",
                                                           "master_addr",
                                                           "master_port",
                                                           "npernode",
                                                           "wdir",
                                                           "allow_run_as_root"};
  const ReadWords read = read_words(words, environment);
  std::vector<std::string> result;
  for (const RunOption& option : run_option_table()) {
    const auto found = read.given.find(option.name);
    if (found == read.given.end() || kOfTheStarter.count(option.name) > 0) continue;
    std::string word = long_option(option.name);
    if (option.kind != OptionKind::kFlag) word += "=" + found->second.value;
    result.push_back(std::move(word));
  }
  result.emplace_back("--");
  result.insert(result.end(), read.command.begin(), read.command.end());
  return result;
}

std::string run_options_help() {
  HelpPage page;
  page.usage = {{"lockstep run [OPTIONS] [--] PROGRAM [ARGS]", ""}};
  page.about =
      "Starts PROGRAM --nproc_per_node times, as the ranks of one job, and ends when all have "
      "ended, with the exit code of the first that failed. A script that ends in .py is run by "
      "python3 -u (PYTHON_EXEC names another Python).";
  for (const RunOptionGroup& group : run_option_groups()) {
    if (!group.title.empty()) page.groups.push_back(help_group(group));
  }
  page.notes =
      "Names may be written with - or _. PET_NAME in the environment is the default of --name.\n"
      "With --host or --hostfile one command starts all hosts. Else agents on several hosts need "
      "LOCKSTEP_SECRET, the same text on each, or LOCKSTEP_SECRET_FILE, a file (mode 600) that "
      "holds it. LOCKSTEP_INSECURE=1 does without one. LOCKSTEP_TLS=1 encrypts "
      "agents' traffic.\n"
      "The options are torchrun's. Different on purpose: $$ in arguments stays as it is "
      "(${local_rank} is replaced), OMP_NUM_THREADS is cores / ranks where it is not set, a "
      "program that does not end in .py is executed, and the exit code is the first failing "
      "worker's.";
  return help_text(page);
}

}  // namespace lockstep::inline internal
