#include "lockstep/train/results_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <regex>

#include "lockstep/base/log.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

namespace fs = std::filesystem;

void check_results_folder(const fs::path& dir) {
  const fs::path nearest = nearest_existing(fs::absolute(dir));
  std::error_code ignored;
  std::string why;
  if (!fs::is_directory(nearest, ignored)) {
    why = fmt::format("{} is no folder", nearest.string());
  } else if (::access(nearest.c_str(), W_OK | X_OK) != 0) {
    why = fmt::format("write to {}: {}", nearest.string(), std::strerror(errno));
  } else {
    return;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("train.ckpt_save_dir {} cannot hold the results: {}", dir.string(), why));
}

std::optional<FolderLock> hold_results_folder(const fs::path& dir, Deadline deadline) {
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored)) return std::nullopt;
  auto lock = FolderLock::await(dir, deadline, [&] {
    log_warn(fmt::format("another run writes into {}; is it ending?", dir.string()));
  });
  if (lock) return lock;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("train.ckpt_save_dir {}: another run writes into it (lockstep ps shows "
                          "those of this host); end that one, or choose another folder",
                          dir.string()));
}

namespace {

constexpr const char* kEarlier = "earlier";

/// Whether `name` is a file of a run; a folder may hold other files too.
bool is_result(const std::string& name) {
  static const std::regex kNames(
      R"(\.?step_\d+.*|\.?(latest|best)(\..*)?|e\d+\.(ckpt|safetensors).*|log_(eval_)?\d+\.txt|)"
      R"(((metrics|events)\.jsonl|result\.log|result\.svg)(\..*)?|(args|train_config)\.yaml|classes\.txt(\..*)?|)"
      R"(confusion(_eval)?\.(csv|svg)|tensorboard|\.(job|writer.*))");
  return std::regex_match(name, kNames);
}

fs::path move_contents(const fs::path& dir) {
  std::vector<fs::path> items;
  for (const std::string& name : list_folder(dir)) {
    if (is_result(name)) items.push_back(dir / name);
  }
  const fs::path target = numbered_path(dir / kEarlier);
  make_folder(target);
  for (const auto& item : items) {
    std::error_code error;
    fs::rename(item, target / item.filename(), error);
    if (error == std::errc::cross_device_link) {  // of an image, below a container's own layer
      error.clear();
      fs::copy(item, target / item.filename(),
               fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
      if (!error) fs::remove_all(item, error);
    }
    if (!error) continue;
    throw Error(ErrorCode::kIo,
                fmt::format("move {} to {}: {}", item.string(), target.string(), error.message()));
  }
  return target;
}

}  // namespace

bool has_results(const fs::path& dir) {
  return has_checkpoint(dir) || fs::exists(dir / "metrics.jsonl");
}

fs::path move_earlier_results(const fs::path& given) {
  const fs::path dir = without_slash(given);
  if (!has_results(dir)) return {};
  const bool has_name = dir.has_filename() && dir.filename() != "." && dir.filename() != "..";
  if (!has_name || fs::is_symlink(dir)) return move_contents(dir);
  const fs::path target = numbered_path(dir);
  std::error_code error;
  fs::rename(dir, target, error);
  return error ? move_contents(dir) : target;
}

bool is_checkpoint_of(const fs::path& checkpoint, const fs::path& dir) {
  return fs::weakly_canonical(checkpoint).parent_path() == without_slash(fs::weakly_canonical(dir));
}

}  // namespace lockstep::inline internal
