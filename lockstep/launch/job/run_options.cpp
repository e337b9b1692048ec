#include "lockstep/launch/job/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/env.h"
#include "lockstep/base/help_text.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/job/run_option_table.h"

namespace lockstep {
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

/// What torchrun reads besides PET_ variables.
constexpr std::pair<std::string_view, std::string_view> kOtherVariables[] = {
    {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "shutdown_timeout"},
    {"TORCHELASTIC_SIGNALS_TO_HANDLE", "signals_to_handle"},
};

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

/// mpirun's way: "-np 4", "-hostfile f".
bool has_one_dash(const std::string& word) {
  if (word.size() < 3 || word[1] == '-') return false;
  std::string name = word.substr(1);
  std::replace(name.begin(), name.end(), '-', '_');
  return std::any_of(run_option_table().begin(), run_option_table().end(),
                     [&](const RunOption& option) { return option.name == name; });
}

void give(const RunOption& option, const std::string& value, const std::string& what,
          GivenOptions* given) {
  Given& place = (*given)[option.name];
  const bool more = option.kind == OptionKind::kList && !place.what.empty();
  place = {more ? place.value + "\n" + value : value, what};
}

/// Consumes the option at words[i] with its value; returns the index after it.
size_t read_option(const std::vector<std::string>& words, size_t i, GivenOptions* given) {
  const std::string word = has_one_dash(words[i]) ? "-" + words[i] : words[i];
  const bool is_long = word.rfind("--", 0) == 0;
  const size_t equals = is_long ? word.find('=') : std::string::npos;
  const std::string what = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const RunOption& option = find_option(what);
  const bool attached = is_long ? equals != std::string::npos : word.size() > 2;
  if (option.kind == OptionKind::kPair) {
    if (attached || i + 2 >= words.size()) {
      refuse_options(fmt::format("{} needs two words ({})", what, option.metavar));
    }
    return i + 3;
  }
  if (option.kind == OptionKind::kFlag) {
    if (attached) refuse_options(fmt::format("{} takes no value", what));
    (*given)[option.name] = {"1", what};
    return i + 1;
  }
  if (attached) {
    const size_t cut = is_long ? equals + 1 : (word[2] == '=' ? 3 : 2);
    give(option, word.substr(cut), what, given);
    return i + 1;
  }
  if (i + 1 == words.size() || words[i + 1] == "--") {
    refuse_options(fmt::format("{} needs a value ({})", what, option.metavar));
  }
  give(option, words[i + 1], what, given);
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
  size_t next = 0;
  while (next < words.size() && words[next].size() > 1 && words[next][0] == '-' &&
         words[next] != "--") {
    next = read_option(words, next, &read.given);
  }
  if (next < words.size() && words[next] == "--") ++next;
  read_variables(environment, &read.given);
  for (const auto& [variable, option] : kOtherVariables) {
    const auto found = environment.find(variable);
    if (found == environment.end() || found->second.empty()) continue;
    read.given.try_emplace(option, Given{found->second, found->first});
  }
  read.command.assign(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
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
                             const std::function<Machine()>& machine) {
  const ReadWords read = read_words(words, environment);
  RunOptionsDraft draft;
  draft.machine = &machine;
  draft.options.wire = wire_of(environment);
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
    std::string word = "--" + std::string(option.name);
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
    if (group.title.empty()) continue;
    HelpGroup shown{std::string(group.title), {}};
    for (const RunOption& option : group.options) {
      if (option.help.empty()) continue;
      std::string left = option.letter == 0 ? "" : fmt::format("-{}, ", option.letter);
      left +=
          fmt::format("--{}{}{}", option.name, option.metavar.empty() ? "" : " ", option.metavar);
      shown.rows.push_back({std::move(left), std::string(option.help)});
    }
    page.groups.push_back(std::move(shown));
  }
  page.notes =
      "Names may be written with - or _. PET_NAME in the environment is the default of --name.\n"
      "With --host or --hostfile one command starts all hosts. Else, with several nodes not all "
      "on this host: set LOCKSTEP_SECRET to the same text on each, or LOCKSTEP_SECRET_FILE to a "
      "file (mode 600) that holds it; LOCKSTEP_INSECURE=1 does without one. LOCKSTEP_TLS=1 "
      "encrypts what the agents say.\n"
      "The options are torchrun's. Different on purpose: $$ in arguments stays as it is "
      "(${local_rank} is replaced), OMP_NUM_THREADS is cores / ranks where it is not set, a "
      "program that does not end in .py is executed, and the exit code is the first failing "
      "worker's.";
  return help_text(page);
}

}  // namespace lockstep
