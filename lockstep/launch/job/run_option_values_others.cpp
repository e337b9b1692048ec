// Options that mpirun, msrun and torch_npu_run have and torchrun has not, and which CPUs ranks
// have.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/job/run_option_values.h"

namespace lockstep::run_values {
namespace {

bool is_true(const Text& value) {
  return value == "True" || value == "true" || value == "1";
}

bool is_false(const Text& value) {
  return value == "False" || value == "false" || value == "0";
}

void choose_binding(Draft& draft, CoreBinding binding, const Text& what) {
  CoreBinding& place = draft.options.core_binding;
  if (place != CoreBinding::kNone && place != binding) {
    refuse_options(what + ": the ranks' cores are already chosen in another way; give one");
  }
  place = binding;
}

}  // namespace

void total_ranks(Draft& draft, const Text& value, const Text& what) {
  draft.options.total_ranks = static_cast<int>(parse_int(value, 1, 1 << 20, what));
}

void local_worker_num(Draft& draft, const Text& value, const Text& what) {
  draft.local_worker_num = static_cast<int>(parse_int(value, 1, 1 << 16, what));
}

void exported(Draft& draft, const Text& value, const Text& what) {
  for (const Text& item : split(value, '\n')) {
    if (item.empty() || item[0] == '=') {
      refuse_options(fmt::format("{}: '{}' is neither NAME nor NAME=VALUE", what, item));
    }
    draft.options.exported.push_back(item);
  }
}

void cluster_time_out(Draft& draft, const Text& value, const Text& what) {
  const bool for_ever = !value.empty() && value[0] == '-';
  draft.options.join_timeout = parse_seconds(for_ever ? "1e9" : value, what);
}

void join(Draft&, const Text& value, const Text& what) {
  if (is_true(value)) return;
  refuse_options(what + " " + value + ": this always waits for its ranks; end the line with &");
}

void tail_worker_log(Draft& draft, const Text& value, const Text& what) {
  if (value != "-1") ranks_filter(draft, value, what);
}

void numa_binding(Draft& draft, const Text& value, const Text& what) {
  choose_binding(draft, parse_core_binding(value, what), what);
}

void bind_core(Draft& draft, const Text& value, const Text& what) {
  if (is_false(value)) return;
  if (!is_true(value)) {
    refuse_options(
        fmt::format("{}: '{}' is neither True nor False; for cores of your own choice "
                    "use taskset or numactl in front of the program",
                    what, value));
  }
  choose_binding(draft, CoreBinding::kExclusive, what);
}

void bind_to(Draft& draft, const Text& given, const Text& what) {
  const Text value = given.substr(0, given.find(':'));
  // A core a rank is mpirun's default, for programs of one thread; here ranks have several.
  if (value == "none" || value == "core" || value == "hwthread") return;
  if (value == "numa") return choose_binding(draft, CoreBinding::kNode, what);
  if (value == "socket" || value == "package") {
    return choose_binding(draft, CoreBinding::kSocket, what);
  }
  if (value == "l3cache") return choose_binding(draft, CoreBinding::kCoreComplex, what);
  refuse_options(
      fmt::format("{}: '{}' is none of none, numa, socket, l3cache; --numa_binding "
                  "exclusive gives each rank its share of the cores",
                  what, value));
}

void map_by(Draft& draft, const Text& value, const Text& what) {
  const auto parts = split(value, ':');
  if (parts[0] == "ppr" && parts.size() > 2 && parts[2] == "node") {
    return local_worker_num(draft, parts[1], what);
  }
  if (parts[0] == "ppr") {
    refuse_options(
        fmt::format("{}: '{}' is not supported: say how many ranks a host runs, as "
                    "ppr:N:node or --nproc_per_node N",
                    what, value));
  }
  // Within a host the order of ranks is theirs; between hosts it is as with all of these.
  static constexpr std::array kWithinHost = {"slot",    "core",    "hwthread", "numa",   "socket",
                                             "package", "l1cache", "l2cache",  "l3cache"};
  if (std::find(kWithinHost.begin(), kWithinHost.end(), parts[0]) != kWithinHost.end()) return;
  refuse_options(fmt::format(
      "{}: '{}' is not supported: ranks fill a host before they come to the next", what, value));
}

void true_or_false(Draft&, const Text& value, const Text& what) {
  if (is_true(value) || is_false(value)) return;
  refuse_options(fmt::format("{}: '{}' is neither true nor false", what, value));
}

}  // namespace lockstep::run_values
