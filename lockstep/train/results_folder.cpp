#include "lockstep/train/results_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/checkpoint_folder.h"

namespace lockstep {

namespace fs = std::filesystem;

void check_results_folder(const fs::path& dir) {
  fs::path nearest = fs::absolute(dir);
  std::error_code ignored;
  while (!fs::exists(nearest, ignored) && nearest.has_relative_path()) {
    nearest = nearest.parent_path();
  }
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
  for (bool told = false;; told = true) {
    auto lock = FolderLock::take(dir);
    if (lock) return lock;
    if (deadline.passed()) break;
    if (!told) log_warn(fmt::format("another run writes into {}; is it ending?", dir.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("train.ckpt_save_dir {}: another run writes into it (lockstep ps shows "
                          "those of this host); end that one, or choose another folder",
                          dir.string()));
}

fs::path move_earlier_results(const fs::path& given) {
  const fs::path dir = without_slash(given);
  if (!has_checkpoint(dir) && !fs::exists(dir / "metrics.jsonl")) return {};
  for (int number = 1;; ++number) {
    const fs::path target = fmt::format("{}.{}", dir.string(), number);
    if (fs::exists(fs::symlink_status(target))) continue;
    std::error_code error;
    fs::rename(dir, target, error);
    if (error) {
      throw Error(ErrorCode::kIo,
                  fmt::format("move {} to {}: {}", dir.string(), target.string(), error.message()));
    }
    return target;
  }
}

bool is_checkpoint_of(const fs::path& checkpoint, const fs::path& dir) {
  return fs::weakly_canonical(checkpoint).parent_path() == without_slash(fs::weakly_canonical(dir));
}

}  // namespace lockstep
