#include <cstdio>

#include "apps/lockstep/verbs.h"
#include "lockstep/base/env.h"
#include "lockstep/base/options.h"
#include "lockstep/world/bootstrap/pmi_wire.h"
#include "lockstep/world/cores.h"
#include "lockstep/world/join/env_report.h"
#include "lockstep/world/join/this_process.h"

namespace lockstep::app {
namespace {

struct EnvRequest {
  RankArguments rank;
  bool given = false;  ///< One of them is.
  bool json = false, help = false;
};

template <auto kMember>
constexpr auto set_number =
    [](EnvRequest& request, const std::string& value, const std::string& what) {
      request.rank.*kMember = static_cast<int>(parse_int(value, 0, kMaxRanks, what));
      request.given = true;
    };

OptionGroup<EnvRequest> env_options() {
  constexpr auto kValue = OptionKind::kValue;
  using R = RankArguments;
  return {
      "",
      {{"json", 0, OptionKind::kFlag, "", "for programs", set_flag<&EnvRequest::json>},
       {"rank", 0, kValue, "N",
        "result for a program that passes this and the following to World::join()",
        set_number<&R::rank>},
       {"world_size", 0, kValue, "N", "ranks of the job", set_number<&R::world_size>},
       {"local_rank", 0, kValue, "N", "which of its host this is", set_number<&R::local_rank>},
       {"local_world_size", 0, kValue, "N", "ranks of this host", set_number<&R::local_world_size>},
       {"node_rank", 0, kValue, "N", "which host this is", set_number<&R::node_rank>},
       {"num_nodes", 0, kValue, "N", "hosts of the job", set_number<&R::num_nodes>},
       {"master_addr", 0, kValue, "HOST", "where rank 0 is",
        [](EnvRequest& request, const std::string& value, const std::string&) {
          request.rank.master_addr = value;
          request.given = true;
        }},
       {"master_port", 0, kValue, "PORT", "where its store listens", set_number<&R::master_port>},
       help_option<EnvRequest>()}};
}

HelpPage env_help() {
  return {{{"lockstep env [--json] [--rank N --world_size N ...]", ""}},
          "Prints which launcher's variables are set here, which one a program would follow, and "
          "which rank it would be; start it as you start the program: mpirun -n 4 lockstep env. "
          "Ends with 2 where a program would refuse.",
          {help_group(env_options())},
          ""};
}

constexpr std::chrono::seconds kPmiLimit{5};

}  // namespace

int verb_env(const std::vector<std::string>& args) {
  EnvRequest request;
  const auto options = env_options().options;
  read_only_options(args, options, "lockstep env", request);
  if (request.help) return print_help(env_help());
  const EnvFacts facts{with_pmi_port(this_environment(), Deadline::after(kPmiLimit)),
                       usable_cores()};
  const Inputs inputs = inputs_from(facts.variables);
  const Decision decision = request.given ? decide(request.rank, inputs) : decide(inputs);
  const auto text = request.json ? env_report_json(decision, facts) : env_report(decision, facts);
  std::fputs(text.c_str(), stdout);
  return decision.problem.empty() ? 0 : 2;
}

}  // namespace lockstep::app
