#include <algorithm>
#include <cstdio>
#include <map>

#include "apps/lockstep/verbs.h"
#include "lockstep/base/env.h"
#include "lockstep/base/help_text.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/bootstrap/pmi_wire.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/join/env_report.h"
#include "lockstep/world/join/this_process.h"

namespace lockstep::app {
namespace {

HelpPage env_help() {
  return {{{"lockstep env [--json] [--rank N --world_size N ...]", ""}},
          "Prints which launcher's variables are set here, which one a program would follow, and "
          "which rank it would be; start it as you start the program: mpirun -n 4 lockstep env. "
          "Ends with 2 where a program would refuse.",
          {{"",
            {{"--json", "for programs"},
             {"--rank N, ...",
              "what a program would do that gives these to World::join(); also --world_size, "
              "--local_rank, "
              "--local_world_size, --node_rank, --num_nodes, --master_addr and --master_port"},
             {"-h, --help", "print this"}}}},
          ""};
}

constexpr std::chrono::seconds kPmiLimit{5};

/// "--rank=1" and "--rank 1".
std::map<std::string, std::string> words_by_name(const std::vector<std::string>& args) {
  const std::vector<std::string> known = {
      "--json",      "--rank",      "--world_size",  "--local_rank", "--local_world_size",
      "--node_rank", "--num_nodes", "--master_addr", "--master_port"};
  std::map<std::string, std::string> words;
  for (size_t i = 0; i < args.size(); ++i) {
    const size_t equals = args[i].find('=');
    const std::string name = args[i].substr(0, equals);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(ErrorCode::kInvalidArgument, "lockstep env: unknown option '" + args[i] + "'" +
                                                   did_you_mean(name, known) + "; see --help");
    }
    if (name == "--json") {
      words[name] = "";
    } else if (equals != std::string::npos) {
      words[name] = args[i].substr(equals + 1);
    } else if (++i < args.size()) {
      words[name] = args[i];
    } else {
      throw Error(ErrorCode::kInvalidArgument, "lockstep env: " + name + " wants a value");
    }
  }
  return words;
}

RankArguments rank_arguments(const std::map<std::string, std::string>& words) {
  const auto number = [&](const char* name) -> std::optional<int> {
    const auto found = words.find(name);
    if (found == words.end()) return std::nullopt;
    return static_cast<int>(parse_int(found->second, 0, kMaxRanks, name));
  };
  RankArguments arguments;
  arguments.rank = number("--rank").value_or(0);
  arguments.world_size = number("--world_size").value_or(1);
  arguments.local_rank = number("--local_rank");
  arguments.local_world_size = number("--local_world_size");
  arguments.node_rank = number("--node_rank");
  arguments.num_nodes = number("--num_nodes");
  arguments.master_port = number("--master_port").value_or(0);
  if (const auto host = words.find("--master_addr"); host != words.end())
    arguments.master_addr = host->second;
  return arguments;
}

}  // namespace

int verb_env(const std::vector<std::string>& args) {
  for (const auto& arg : args) {
    if (arg != "--help" && arg != "-h") continue;
    std::fputs(help_text(env_help()).c_str(), stdout);
    return 0;
  }
  auto words = words_by_name(args);
  const bool json = words.erase("--json") > 0;
  const EnvFacts facts{with_pmi_port(this_environment(), Deadline::after(kPmiLimit)),
                       usable_cores()};
  const Inputs inputs = inputs_from(facts.variables);
  const Decision decision = words.empty() ? decide(inputs) : decide(rank_arguments(words), inputs);
  const auto text = json ? env_report_json(decision, facts) : env_report(decision, facts);
  std::fputs(text.c_str(), stdout);
  return decision.problem.empty() ? 0 : 2;
}

}  // namespace lockstep::app
