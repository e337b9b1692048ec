#include "lockstep/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/base/number.h"
#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";

std::optional<int64_t> parse_step_folder(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const auto step = as_number<int64_t>(name);
  return step && *step >= 0 ? step : std::nullopt;
}

std::optional<double> read_metric(const fs::path& folder, const std::string& name) {
  try {
    const fs::path file = folder / kStateFile;
    const auto state = decode_training_state(read_file(file), file.string()).state;
    const auto& value = state.metric_value;
    return state.metric == name && value && std::isfinite(*value) ? value : std::nullopt;
  } catch (const Error& error) {
    log_debug(fmt::format("ranked as without metric: {}", error.what()));
    return std::nullopt;
  }
}

/// Names of complete checkpoints, by step; none if there is no such folder. Errors: kIo, for the
/// newest might be among the names that are not read.
std::vector<CheckpointEntry> find_step_folders(const fs::path& dir) {
  std::vector<CheckpointEntry> entries;
  std::error_code none;
  if (!fs::is_directory(dir, none)) return entries;
  for (const std::string& name : list_folder(dir)) {
    const auto step = parse_step_folder(name);
    if (step && fs::exists(dir / name / kStateFile, none)) {
      entries.push_back({name, *step, std::nullopt});
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
  return entries;
}

}  // namespace

std::string internal::step_folder_name(int64_t step) {
  return fmt::format("{}{:06}", kPrefix, step);
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& dir, const std::string& metric) {
  std::vector<CheckpointEntry> entries = find_step_folders(dir);
  for (CheckpointEntry& entry : entries) entry.metric = read_metric(dir / entry.name, metric);
  return entries;
}

fs::path find_checkpoint(const fs::path& path) {
  std::error_code none;
  if (fs::exists(path / kStateFile, none)) return path;
  if (fs::exists(path / "latest" / kStateFile, none)) {
    const fs::path target = fs::read_symlink(path / "latest", none);
    return none ? path / "latest" : path / target;
  }
  const auto entries = find_step_folders(path);
  if (!entries.empty()) return path / entries.back().name;
  if (!fs::exists(path, none)) {
    throw Error(ErrorCode::kNotFound, path.string() + ": no such checkpoint or folder of them");
  }
  if (!fs::is_directory(path, none)) {
    throw Error(ErrorCode::kInvalidArgument,
                path.string() +
                    ": a file, and a checkpoint is a folder (step_*, or the one that "
                    "holds it); weights alone are for model.pretrained");
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("{}: no checkpoint there (neither {}, nor latest, nor {}*/{})",
                          path.string(), kStateFile, kPrefix, kStateFile));
}

std::string internal::lost_latest_warning(const fs::path& path) {
  std::error_code none;
  const fs::path latest = path / "latest";
  if (fs::exists(path / kStateFile, none) || fs::exists(latest / kStateFile, none)) return "";
  if (!fs::is_symlink(latest, none)) return "";
  const auto entries = find_step_folders(path);
  if (entries.empty()) return "";
  return fmt::format("{} points to {}, which is no whole checkpoint any more: {} is taken",
                     latest.string(), fs::read_symlink(latest, none).string(), entries.back().name);
}

bool has_checkpoint(const fs::path& path) {
  std::error_code none;
  return fs::exists(path / kStateFile, none) || fs::exists(path / "latest" / kStateFile, none) ||
         !find_step_folders(path).empty();
}

fs::path weights_in(const fs::path& path, bool averaged) {
  if (!fs::is_directory(path)) return path;
  const fs::path folder = find_checkpoint(path);
  return folder / (averaged && fs::exists(folder / kEmaFile) ? kEmaFile : kModelFile);
}

}  // namespace lockstep
