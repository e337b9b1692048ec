#include "lockstep/parallel/comm_hook_state.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/text.h"
#include "lockstep/collectives.h"
#include "lockstep/error.h"
#include "lockstep/parallel/module_state.h"

namespace lockstep::inline internal {

std::string to_text(const BucketNames& buckets) {
  std::vector<std::string> texts;
  for (const auto& names : buckets) texts.push_back(fmt::format("{}", fmt::join(names, "\n")));
  return fmt::format("{}", fmt::join(texts, "\n\n"));
}

BucketNames bucket_names_from_text(const std::string& text) {
  BucketNames buckets(1);
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) {
      buckets.emplace_back();
    } else {
      buckets.back().push_back(line);
    }
  }
  std::erase_if(buckets, [](const auto& names) { return names.empty(); });
  return buckets;
}

std::vector<HookState> gather_states(ProcessGroup& group, const HookState& own) {
  std::vector<std::string> descriptions;
  for (const auto& [name, tensor] : own) {
    descriptions.push_back(describe("state of the comm_hook", {name, tensor}));
  }
  check_same_on_all_ranks(group, descriptions);
  const bool root = group.rank() == 0;
  std::vector<HookState> states(root ? static_cast<size_t>(group.size()) : 0);
  for (const auto& [name, tensor] : own) {
    auto sizes = tensor.sizes().vec();
    sizes.insert(sizes.begin(), group.size());
    const at::Tensor all = root ? at::empty(sizes, tensor.options()) : at::Tensor();
    gather(group, tensor.contiguous(), all, 0).wait();
    for (size_t rank = 0; rank < states.size(); ++rank) {
      states[rank][name] = all.select(0, static_cast<int64_t>(rank));
    }
  }
  return states;
}

std::string misfit(const CommHookState& state, int ranks, const std::string& hook) {
  const auto text = [&](const char* name) {
    const auto found = state.about.find(name);
    return found == state.about.end() ? std::string("none") : found->second;
  };
  if (text("hook") != hook) {
    return fmt::format("it is that of comm_hook {}, this run has {}", text("hook"), hook);
  }
  if (text("ranks") != std::to_string(ranks)) {
    return fmt::format("it is that of {} ranks, this run has {}", text("ranks"), ranks);
  }
  return "";
}

bool all_fit(ProcessGroup& group, bool fits) {
  int64_t least = fits ? 1 : 0;
  group.all_reduce(&least, 1, DType::kInt64, ReduceOp::kMin).wait();
  return least == 1;
}

std::string bucket_key(int bucket, const std::string& name) {
  return fmt::format("{}.{}", bucket, name);
}

void LoadedBuckets::take(const std::string& key, const at::Tensor& place) {
  const auto node = tensors_.extract(key);
  if (node.empty()) return;
  const at::Tensor& loaded = node.mapped();
  if (loaded.sizes() != place.sizes() || loaded.scalar_type() != place.scalar_type()) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("state '{}' of a hook is {} [{}], not {} [{}]", key,
                            c10::toString(loaded.scalar_type()), fmt::join(loaded.sizes(), ", "),
                            c10::toString(place.scalar_type()), fmt::join(place.sizes(), ", ")));
  }
  place.copy_(loaded);
}

}  // namespace lockstep::inline internal
