#include <cstdio>

#include "apps/lockstep/verbs.h"
#include "lockstep/base/help_text.h"

namespace lockstep::app {

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

}  // namespace lockstep::app
