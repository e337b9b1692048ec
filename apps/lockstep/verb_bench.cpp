#include <cstdio>

#include "apps/lockstep/verbs.h"

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
    std::fprintf(asked ? stdout : stderr, "usage: lockstep bench NAME [OPTIONS]\n\n%s",
                 command_table(benchmarks()).c_str());
    return asked ? 0 : 2;
  }
  return dispatch(benchmarks(), "lockstep bench", "benchmark", args);
}

}  // namespace lockstep::app
