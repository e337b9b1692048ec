#include "lockstep/launch/agent/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"

// A table of our own and not CLI11: torchrun's command line has two spellings of every name, ends
// at the first positional word and takes defaults from PET_ variables, and this program has to
// start in a millisecond.

namespace lockstep {
namespace {

/// What the options say before they are put together.
struct Draft {
  RunOptions options;
  const Machine* machine = nullptr;
  std::string rdzv_endpoint;
  bool standalone = false;
  bool master_given = false;
  bool streams_given = false;
};

/// Takes an option's value. `what` names the option or variable it came from.
using Apply = void (*)(Draft& draft, const std::string& value, const std::string& what);

enum class Kind { kValue, kFlag };

struct Option {
  std::string_view name;  ///< With underscores.
  char letter;            ///< '\0': none.
  Kind kind;
  std::string_view metavar;
  std::string_view help;  ///< Empty: not listed.
  Apply apply;
};

[[noreturn]] void refuse(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

int whole(const std::string& value, int lo, int hi, const std::string& what) {
  return static_cast<int>(parse_int(value, lo, hi, what));
}

std::chrono::milliseconds seconds(const std::string& value, const std::string& what) {
  size_t used = 0;
  double number = -1;
  try {
    number = std::stod(value, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != value.size() || !(number >= 0 && number <= 1e9)) {
    refuse(fmt::format("{}: '{}' is not a number of seconds", what, value));
  }
  return std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(number));
}

void set_nproc(Draft& draft, const std::string& value, const std::string& what) {
  const Machine& machine = *draft.machine;
  int& nproc = draft.options.nproc_per_node;
  if (value == "cpu") {
    nproc = machine.cores;
  } else if (value == "auto") {
    nproc = machine.gpus > 0 ? machine.gpus : machine.cores;
  } else if (value == "gpu") {
    if (machine.gpus == 0) refuse(what + ": this host has no GPU");
    nproc = machine.gpus;
  } else if (!value.empty() && value.find_first_not_of("0123456789-") == std::string::npos) {
    nproc = whole(value, 1, 1 << 16, what);
  } else {
    refuse(
        fmt::format("{}: '{}' is neither a number of processes nor auto, cpu or gpu", what, value));
  }
}

void set_nnodes(Draft& draft, const std::string& value, const std::string& what) {
  const auto parts = split(value, ':');
  if (parts.size() > 2) refuse(fmt::format("{}: '{}' is not a number of nodes", what, value));
  draft.options.num_nodes = whole(parts[0], 1, 1 << 20, what);
  if (parts.size() == 2 && whole(parts[1], 1, 1 << 20, what) != draft.options.num_nodes) {
    refuse(fmt::format("{}: a changing number of nodes ({}) is not supported; give one number",
                       what, value));
  }
}

void set_backend(Draft&, const std::string& value, const std::string& what) {
  if (value != "static") {
    refuse(
        fmt::format("{}: rendezvous back end '{}' is not supported; there is: static "
                    "(--master_addr, --master_port, --node_rank)",
                    what, value));
  }
}

void set_restarts(Draft&, const std::string& value, const std::string& what) {
  if (whole(value, 0, 1 << 30, what) > 0) {
    refuse(what + ": restarting failed workers is not supported; only 0 is");
  }
}

void set_rdzv_conf(Draft& draft, const std::string& value, const std::string& what) {
  for (const std::string& item : split(value, ',')) {
    const auto parts = split(item, '=');
    if (parts.size() != 2) refuse(fmt::format("{}: '{}' is not KEY=VALUE", what, item));
    if (parts[0] != "timeout") {
      refuse(fmt::format("{}: unknown key '{}'; there is: timeout (seconds)", what, parts[0]));
    }
    draft.options.join_timeout = seconds(parts[1], what + " timeout");
  }
}

void set_filter(Draft& draft, const std::string& value, const std::string& what) {
  draft.options.local_ranks_filter.clear();
  for (const std::string& item : split(value, ',')) {
    draft.options.local_ranks_filter.insert(whole(item, 0, 1 << 16, what));
  }
}

template <const char* kReason>
void unsupported(Draft&, const std::string&, const std::string& what) {
  refuse(what + " is not supported: " + kReason);
}

constexpr char kPythonOnly[] = "workers are programs; for Python, write -- python3 ...";
constexpr char kLogSpecs[] = "lines go to the console and, with --log_dir, to files";
constexpr char kNoBinding[] = "use taskset or numactl in front of the program";
constexpr char kSignals[] = "TERM, INT, HUP, QUIT, USR1 and USR2 are forwarded";
constexpr char kNoVirtual[] = "LOCAL_RANK always counts from 0 on each node";

void accept(Draft&, const std::string&, const std::string&) {}

const std::vector<Option>& option_table() {
  static const std::vector<Option> kOptions = {
      {"nproc_per_node", 0, Kind::kValue, "N",
       "processes on this node: a number, auto, cpu or gpu (1)", set_nproc},
      {"nnodes", 0, Kind::kValue, "N", "nodes (1)", set_nnodes},
      {"node_rank", 0, Kind::kValue, "R", "which of them this is, from 0 (0)",
       [](Draft& d, const std::string& v, const std::string& what) {
         d.options.node_rank = whole(v, 0, 1 << 20, what);
       }},
      {"master_addr", 0, Kind::kValue, "HOST", "several nodes: address of node 0 (127.0.0.1)",
       [](Draft& d, const std::string& v, const std::string& what) {
         if (v.empty()) refuse(what + " is empty");
         d.options.master_addr = v;
         d.master_given = true;
       }},
      {"master_port", 0, Kind::kValue, "PORT",
       "its port (29500 with several nodes; one node: a free one)",
       [](Draft& d, const std::string& v, const std::string& what) {
         d.options.master_port = whole(v, 0, 65535, what);
         d.master_given = true;
       }},
      {"rdzv_endpoint", 0, Kind::kValue, "H:P", "both at once",
       [](Draft& d, const std::string& v, const std::string&) { d.rdzv_endpoint = v; }},
      {"rdzv_id", 0, Kind::kValue, "NAME", "name of the run (made up from date and time)",
       [](Draft& d, const std::string& v, const std::string& what) {
         if (v.find('/') != std::string::npos || v == "." || v == "..") {
           refuse(fmt::format("{}: '{}' cannot name a folder", what, v));
         }
         d.options.run_id = v;
       }},
      {"rdzv_conf", 0, Kind::kValue, "timeout=S", "how long nodes wait for each other (900)",
       set_rdzv_conf},
      {"local_addr", 0, Kind::kValue, "HOST", "address of this node for the others (found out)",
       [](Draft& d, const std::string& v, const std::string&) { d.options.local_addr = v; }},
      {"standalone", 0, Kind::kFlag, "", "one node, nothing to configure (the default)",
       [](Draft& d, const std::string&, const std::string&) { d.standalone = true; }},
      {"log_dir", 0, Kind::kValue, "DIR",
       "keep output: DIR/RUN/attempt_0/LOCAL_RANK/{stdout,stderr}.log",
       [](Draft& d, const std::string& v, const std::string&) { d.options.log_dir = v; }},
      {"redirects", 'r', Kind::kValue, "MAP",
       "to files only: 1 stdout, 2 stderr, 3 both; or 0:3,1:2 by local rank",
       [](Draft& d, const std::string& v, const std::string& what) {
         d.options.redirects = StreamMap::parse(v, what);
         d.streams_given = true;
       }},
      {"tee", 't', Kind::kValue, "MAP", "to files and console (3 with --log_dir alone)",
       [](Draft& d, const std::string& v, const std::string& what) {
         d.options.tee = StreamMap::parse(v, what);
         d.streams_given = true;
       }},
      {"local_ranks_filter", 0, Kind::kValue, "R,R", "only these local ranks on the console",
       set_filter},
      {"role", 0, Kind::kValue, "NAME", "ROLE_NAME of the workers (default)",
       [](Draft& d, const std::string& v, const std::string&) { d.options.role = v; }},
      {"shutdown_timeout", 0, Kind::kValue, "S", "seconds from SIGTERM to SIGKILL (30)",
       [](Draft& d, const std::string& v, const std::string& what) {
         d.options.shutdown_timeout = seconds(v, what);
       }},
      {"help", 'h', Kind::kFlag, "", "print this",
       [](Draft& d, const std::string&, const std::string&) { d.options.help = true; }},
      // Always so, whatever is said: taken so that torchrun's command lines work.
      {"no_python", 0, Kind::kFlag, "", "", accept},
      {"monitor_interval", 0, Kind::kValue, "S", "",
       [](Draft&, const std::string& v, const std::string& what) { seconds(v, what); }},
      {"rdzv_backend", 0, Kind::kValue, "NAME", "", set_backend},
      {"max_restarts", 0, Kind::kValue, "N", "", set_restarts},
      {"module", 'm', Kind::kFlag, "", "", unsupported<kPythonOnly>},
      {"run_path", 0, Kind::kFlag, "", "", unsupported<kPythonOnly>},
      {"start_method", 0, Kind::kValue, "M", "", unsupported<kPythonOnly>},
      {"virtual_local_rank", 0, Kind::kFlag, "", "", unsupported<kNoVirtual>},
      {"numa_binding", 0, Kind::kValue, "M", "", unsupported<kNoBinding>},
      {"signals_to_handle", 0, Kind::kValue, "S", "", unsupported<kSignals>},
      {"event_log_handler", 0, Kind::kValue, "H", "", unsupported<kLogSpecs>},
      {"logs_specs", 0, Kind::kValue, "L", "", unsupported<kLogSpecs>},
      {"duplicate_stdout_filters", 0, Kind::kValue, "F", "", unsupported<kLogSpecs>},
      {"duplicate_stderr_filters", 0, Kind::kValue, "F", "", unsupported<kLogSpecs>},
  };
  return kOptions;
}

struct Given {
  std::string value;
  std::string what;  ///< "--nnodes" as the user wrote it, or "PET_NNODES".
};
using GivenOptions = std::map<std::string_view, Given>;

const Option& find_option(const std::string& word) {
  std::string name = word.substr(word.rfind("--", 0) == 0 ? 2 : 1);
  const bool letter = word.rfind("--", 0) != 0;
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> names;
  for (const Option& option : option_table()) {
    if (letter ? name.size() == 1 && option.letter == name[0] : option.name == name) return option;
    names.push_back("--" + std::string(option.name));
  }
  std::string nearest = did_you_mean("--" + name, names);
  for (size_t i = 0; nearest.empty() && name.size() > 2 && i < names.size(); ++i) {
    if (names[i].rfind("--" + name, 0) == 0) nearest = ", did you mean '" + names[i] + "'?";
  }
  refuse(fmt::format("unknown option {}{} (lockstep run --help lists them)", word, nearest));
}

/// Consumes the option at words[i] with its value; returns the index after it.
size_t read_option(const std::vector<std::string>& words, size_t i, GivenOptions* given) {
  const std::string& word = words[i];
  const bool is_long = word.rfind("--", 0) == 0;
  const size_t equals = is_long ? word.find('=') : std::string::npos;
  const std::string what = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const Option& option = find_option(what);
  const bool attached = is_long ? equals != std::string::npos : word.size() > 2;
  if (option.kind == Kind::kFlag) {
    if (attached) refuse(fmt::format("{} takes no value", what));
    (*given)[option.name] = {"1", what};
    return i + 1;
  }
  if (attached) {
    const size_t cut = is_long ? equals + 1 : (word[2] == '=' ? 3 : 2);
    (*given)[option.name] = {word.substr(cut), what};
    return i + 1;
  }
  if (i + 1 == words.size() || words[i + 1] == "--") {
    refuse(fmt::format("{} needs a value ({})", what, option.metavar));
  }
  (*given)[option.name] = {words[i + 1], what};
  return i + 2;
}

/// PET_NAME variables, for options that the command line does not give. Flags are 0 or 1.
void read_variables(const Environment& environment, GivenOptions* given) {
  for (const Option& option : option_table()) {
    std::string name = "PET_" + std::string(option.name);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty() || option.name == "help") continue;
    if (option.kind == Kind::kFlag && whole(found->second, 0, 1, name) == 0) continue;
    given->try_emplace(option.name, Given{found->second, name});
  }
}

void use_endpoint(Draft* draft) {
  if (draft->rdzv_endpoint.empty()) return;
  if (draft->master_given) refuse("--rdzv_endpoint and --master_addr say the same; give one");
  const Endpoint endpoint = parse_endpoint(draft->rdzv_endpoint, 0);
  draft->options.master_addr = endpoint.host;
  draft->options.master_port = endpoint.port;
}

/// What only the options together can tell.
void check_together(const Draft& draft) {
  const RunOptions& options = draft.options;
  if (options.node_rank >= options.num_nodes) {
    refuse(fmt::format("--node_rank {} must be below --nnodes {}", options.node_rank,
                       options.num_nodes));
  }
  if (draft.standalone && options.num_nodes > 1) {
    refuse(fmt::format("--standalone is one node, --nnodes says {}", options.num_nodes));
  }
  if (options.log_dir.empty() && (options.redirects.any() || options.tee.any())) {
    refuse(
        fmt::format("--{} writes files: say where with --log_dir DIR (without files, every "
                    "line goes to the console)",
                    options.redirects.any() ? "redirects" : "tee"));
  }
  const int highest =
      std::max({options.redirects.highest(), options.tee.highest(),
                options.local_ranks_filter.empty() ? -1 : *options.local_ranks_filter.rbegin()});
  if (highest >= options.nproc_per_node) {
    refuse(fmt::format("there is no local rank {} to choose the output of: --nproc_per_node is {}",
                       highest, options.nproc_per_node));
  }
}

RunOptions finish(Draft draft) {
  use_endpoint(&draft);
  RunOptions& options = draft.options;
  if (options.help) return options;
  if (options.command.empty()) {
    refuse("no program given: lockstep run [OPTIONS] [--] PROGRAM [ARGS]");
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
  Draft draft;
  draft.machine = &machine;
  for (const Option& option : option_table()) {
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
  for (const Option& option : option_table()) {
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
