#include "lockstep/parallel/kernel_choices.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <set>

#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/world/kernel_variables.h"

namespace lockstep::inline internal {
namespace {

constexpr const char* kNotSet = "not set";

/// libtorch's own report; at::get_cpu_capability() came after 1.13.
std::string instruction_set() {
  constexpr std::string_view kLabel = "CPU capability usage: ";
  const std::string text = at::show_config();
  const size_t at = text.find(kLabel);
  if (at == std::string::npos) return "unknown";
  const size_t begin = at + kLabel.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// Depends on this processor and OPENBLAS_CORETYPE; empty if libtorch uses another library.
std::string openblas_kernels() {
  using NameOf = char* (*)();
  const auto name = reinterpret_cast<NameOf>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name ? name() : "";
}

std::string encode(const KernelChoices& choices) {
  std::string text;
  for (const auto& [name, value] : choices) text += name + "\t" + value + "\n";
  return text;
}

KernelChoices decode(std::string_view text) {
  KernelChoices choices;
  for (const std::string& line : split(text, '\n')) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos) choices[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return choices;
}

/// Every rank's text, on all ranks.
std::vector<std::string> gather_texts(ProcessGroup& group, const std::string& own, CallSite site) {
  const auto size = static_cast<size_t>(group.size());
  std::vector<int64_t> counts(size);
  const auto count = static_cast<int64_t>(own.size());
  group.all_gather(&count, counts.data(), 1, DType::kInt64, {}, site).wait();
  std::string all(static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), int64_t{0})),
                  '\0');
  group.all_gatherv(own.data(), all.data(), counts, DType::kUint8, {}, site).wait();
  std::vector<std::string> texts;
  size_t at = 0;
  for (const int64_t each : counts) {
    texts.push_back(all.substr(at, static_cast<size_t>(each)));
    at += static_cast<size_t>(each);
  }
  return texts;
}

}  // namespace

KernelChoices kernel_choices() {
  KernelChoices choices;
  for (const char* name : kKernelVariables) {
    if (const char* value = std::getenv(name)) choices[name] = value;
  }
  choices["intra-op threads"] = std::to_string(at::get_num_threads());
  choices["libtorch's instruction set"] = instruction_set();
  const std::string kernels = openblas_kernels();
  if (!kernels.empty()) choices["OpenBLAS's kernels"] = kernels;
  return choices;
}

std::string kernel_difference(const std::vector<KernelChoices>& by_rank) {
  std::set<std::string> names;
  for (const auto& choices : by_rank) {
    for (const auto& [name, value] : choices) names.insert(name);
  }
  std::vector<std::string> differences;
  for (const std::string& name : names) {
    std::map<std::string, std::vector<int>> ranks;  // by value
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      const auto found = by_rank[rank].find(name);
      const bool set = found != by_rank[rank].end();
      ranks[set ? found->second : kNotSet].push_back(static_cast<int>(rank));
    }
    if (ranks.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [value, own] : ranks) {
      parts.push_back(fmt::format("{} on {}", value, rank_list(own)));
    }
    differences.push_back(fmt::format("{}: {}", name, fmt::join(parts, ", ")));
  }
  return fmt::format("{}", fmt::join(differences, "; "));
}

void compare_kernel_choices(ProcessGroup& group, CallSite site) {
  static std::atomic<bool> warned = false;
  const std::string own = encode(kernel_choices());
  const auto digest = static_cast<uint64_t>(std::hash<std::string>()(own));
  std::vector<uint64_t> digests(static_cast<size_t>(group.size()));
  group.all_gather(&digest, digests.data(), 1, DType::kInt64, {}, site).wait();
  if (std::all_of(digests.begin(), digests.end(), [&](auto each) { return each == digests[0]; })) {
    return;
  }
  std::vector<KernelChoices> by_rank;
  for (const auto& text : gather_texts(group, own, site)) by_rank.push_back(decode(text));
  if (group.rank() != 0 || warned.exchange(true)) return;
  log_warn(
      fmt::format("ranks compute with different kernels, so the same numbers get other bits "
                  "on some. {}. Variables of the environment can be set alike: lockstep run "
                  "-x NAME, mpirun -x NAME",
                  kernel_difference(by_rank)));
}

}  // namespace lockstep::inline internal
