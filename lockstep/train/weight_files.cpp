#include "lockstep/train/weight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/checkpoint/mindspore_file.h"
#include "lockstep/checkpoint/staged_folder.h"
#include "lockstep/checkpoint_folder.h"

namespace lockstep::inline internal {

namespace fs = std::filesystem;

namespace {

CheckpointEntry entry_of(const EpochWeights& file) {
  const auto metric = std::isfinite(file.value) ? std::optional(file.value) : std::nullopt;
  return {.name = {}, .step = file.epoch, .metric = metric};
}

}  // namespace

std::vector<EpochWeights> weights_to_keep(std::vector<EpochWeights> files,
                                          const KeepPolicy& policy) {
  std::sort(files.begin(), files.end(), [&](const EpochWeights& a, const EpochWeights& b) {
    return keeps_rather(policy, entry_of(a), entry_of(b));
  });
  if (policy.keep != Keep::kAll && std::ssize(files) > policy.count) {
    files.resize(static_cast<size_t>(policy.count));
  }
  return files;
}

WeightFiles::WeightFiles(fs::path dir, std::string format, const KeepPolicy& policy,
                         const std::vector<EpochWeights>& earlier, const WriterFence& fence)
    : dir_(std::move(dir)), format_(std::move(format)), policy_(policy), fence_(fence) {
  for (const EpochWeights& epoch : earlier) {
    if (fs::exists(path_of(epoch.epoch))) kept_.push_back(ranked(epoch));
  }
  kept_ = weights_to_keep(std::move(kept_), policy_);
}

fs::path WeightFiles::path_of(int64_t epoch) const {
  return dir_ / fmt::format("e{}.{}", epoch, format_);
}

fs::path WeightFiles::best_path() const {
  return dir_ / ("best." + format_);
}

EpochWeights WeightFiles::ranked(const EpochWeights& epoch) const {
  const bool has_value = policy_.higher_is_better || epoch.value != kUnevaluated;
  return {epoch.epoch, has_value ? epoch.value : std::numeric_limits<double>::quiet_NaN()};
}

void WeightFiles::save_epoch(const EpochWeights& given, const TensorMap& weights,
                             const fs::path& equal) {
  const EpochWeights epoch = ranked(given);
  auto all = kept_;
  std::erase_if(all, [&](const EpochWeights& item) { return item.epoch == epoch.epoch; });
  all.push_back(epoch);
  kept_ = weights_to_keep(all, policy_);
  const auto keeps = [&](const EpochWeights& item) {  // by the epoch: NaN equals no value
    return std::any_of(kept_.begin(), kept_.end(),
                       [&](const EpochWeights& kept) { return kept.epoch == item.epoch; });
  };
  if (keeps(epoch)) save(path_of(epoch.epoch), weights, equal);  // first, because it may fail
  for (const auto& item : all) {
    if (keeps(item)) continue;
    fence_.check();
    fs::remove(path_of(item.epoch));
  }
}

void WeightFiles::save_best(const TensorMap& weights, const fs::path& equal) const {
  save(best_path(), weights, equal);
}

bool WeightFiles::name_best(int64_t epoch) const {
  const fs::path file = path_of(epoch);
  const fs::path name = best_path().filename();
  if (!fs::exists(file)) return false;
  if (replace_by_link(dir_, name, file, fence_)) return true;
  replace_file(dir_, name, fence_, [&](const fs::path& hidden) {
    fs::copy_file(file, hidden, fs::copy_options::overwrite_existing);
  });
  return true;
}

void WeightFiles::save(const fs::path& path, const TensorMap& weights,
                       const fs::path& equal) const {
  const fs::path name = path.filename();
  if (!equal.empty() && replace_by_link(dir_, name, equal, fence_)) return;
  replace_file(dir_, name, fence_, [&](const fs::path& hidden) {
    if (format_ == "ckpt") {
      save_ckpt(hidden, weights);
    } else {
      save_tensors(hidden, weights, {{"format", "pt"}});  // transformers wants it
    }
  });
}

}  // namespace lockstep::inline internal
