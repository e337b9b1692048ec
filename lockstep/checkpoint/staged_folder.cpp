#include "lockstep/checkpoint/staged_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>

#include "lockstep/base/file.h"
#include "lockstep/base/folder.h"
#include "lockstep/base/log.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/checkpoint/training_state_format.h"
#include "lockstep/checkpoint/writer.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

namespace fs = std::filesystem;

/// Deletes what no reader sees any more. If that fails, a later run does it: on NFS a file that a
/// process of this host has open keeps its folder.
void remove_hidden(const fs::path& hidden) {
  std::error_code error;
  fs::remove_all(hidden, error);
  if (error) log_warn(fmt::format("cannot delete {}: {}", hidden.string(), error.message()));
}

/// Renames `from` to `to`, which may be a filled folder.
void replace_folder(const fs::path& from, const fs::path& to, const WriterFence& fence) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST) throw io_error("rename to " + to.string());
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    remove_hidden(from);  // the older folder has this name now
    return;
  }
  // On a file system without exchange, such as NFS, neither exists for an instant. After a crash
  // right then, a run resumes from `latest` or the newest other checkpoint.
  remove_checkpoint(to.parent_path(), to.filename().string(), fence);
  if (::rename(from.c_str(), to.c_str()) != 0) throw io_error("rename to " + to.string());
}

}  // namespace

StagedFolder::StagedFolder(const fs::path& dir, const std::string& name, const WriterFence& fence)
    : fence_(fence), staged_(dir / Writer::of(fence).hidden(name)), final_(dir / name) {
  std::error_code error;
  fs::create_directories(staged_, error);
  if (error) {
    throw Error(ErrorCode::kIo, fmt::format("make {}: {}", staged_.string(), error.message()));
  }
}

StagedFolder::~StagedFolder() {
  std::error_code none;
  if (!published_) fs::remove_all(staged_, none);
}

void StagedFolder::publish() {
  // A newer generation has removed the folder: its sync would fail without a reason.
  fence_.check();
  sync_folder(staged_);
  fence_.check();
  replace_folder(staged_, final_, fence_);
  published_ = true;
  sync_folder(final_.parent_path());
}

namespace {

/// The last step of a replacement; on failure the hidden file is removed.
void take_name(const fs::path& hidden, const fs::path& name, const WriterFence& fence) {
  try {
    fence.check();
    if (::rename(hidden.c_str(), name.c_str()) != 0) throw io_error("rename to " + name.string());
  } catch (...) {
    ::unlink(hidden.c_str());
    throw;
  }
  ::unlink(hidden.c_str());  // rename keeps both names if they are links to one file
  sync_folder(name.parent_path());
}

}  // namespace

void replace_file(const fs::path& dir, const fs::path& name, const WriterFence& fence,
                  const std::function<void(const fs::path&)>& fill) {
  const fs::path hidden = dir / Writer::of(fence).hidden(name.filename().string());
  try {
    fill(hidden);
  } catch (...) {
    ::unlink(hidden.c_str());
    throw;
  }
  take_name(hidden, dir / name, fence);
}

bool replace_by_link(const fs::path& dir, const fs::path& name, const fs::path& equal,
                     const WriterFence& fence) {
  const fs::path hidden = dir / Writer::of(fence).hidden(name.filename().string());
  ::unlink(hidden.c_str());
  if (::link(equal.c_str(), hidden.c_str()) != 0) return false;
  take_name(hidden, dir / name, fence);
  return true;
}

void point_link(const fs::path& dir, const std::string& name, const std::string& target,
                const WriterFence& fence) {
  const fs::path link = dir / name;
  std::error_code none;
  if (fs::read_symlink(link, none) == target) return;
  const fs::path hidden = dir / Writer::of(fence).hidden(name);
  ::unlink(hidden.c_str());
  if (::symlink(target.c_str(), hidden.c_str()) != 0) {
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) {
      throw io_error("link " + link.string());
    }
    static std::atomic<bool> told{false};
    if (!told.exchange(true)) {
      log_warn(
          fmt::format("{} is on a file system without symbolic links, so there is no '{}': a "
                      "run goes on from the newest checkpoint",
                      dir.string(), name));
    }
    return;
  }
  take_name(hidden, link, fence);
}

void remove_link(const fs::path& dir, const std::string& name) {
  const fs::path link = dir / name;
  if (!fs::is_symlink(fs::symlink_status(link))) return;
  if (::unlink(link.c_str()) != 0) throw io_error("delete " + link.string());
  sync_folder(dir);
}

void remove_checkpoint(const fs::path& dir, const std::string& name, const WriterFence& fence) {
  const fs::path hidden = dir / Writer::of(fence).hidden(name + "-old");
  fence.check();
  if (::rename((dir / name).c_str(), hidden.c_str()) == 0) return remove_hidden(hidden);
  // A folder of an image, below a container's own layer. Without its state it is no checkpoint.
  if (errno != EXDEV || ::unlink((dir / name / kStateFile).c_str()) != 0) {
    throw io_error("delete " + (dir / name).string());
  }
  remove_hidden(dir / name);
}

namespace {

constexpr auto kLongestPause = std::chrono::hours(24);

/// Whether nothing in a file or folder was written for so long. A writer that lives has changed
/// something since, however slow its disk.
bool is_abandoned(const fs::path& path) {
  std::error_code error;
  const auto is_old = [&error, now = fs::file_time_type::clock::now()](const fs::path& item) {
    const auto changed = fs::last_write_time(item, error);
    return !error && now - changed > kLongestPause;
  };
  if (fs::is_symlink(fs::symlink_status(path, error)) || !is_old(path)) return false;
  if (!fs::is_directory(path, error)) return !error;
  fs::recursive_directory_iterator item(path, error);
  for (const fs::recursive_directory_iterator end; !error && item != end; item.increment(error)) {
    if (!is_old(item->path())) return false;
  }
  return !error;
}

}  // namespace

void remove_leftovers(const fs::path& dir, const WriterFence& fence) {
  constexpr std::string_view kHidden = ".tmp-";
  const WriterName& own = Writer::of(fence).name();
  std::error_code none;
  std::vector<fs::path> found;
  for (const std::string& name : entry_names(dir)) {
    const size_t at = name.find(kHidden);
    if (!name.starts_with('.') || at == std::string::npos) continue;
    const auto writer = WriterName::parse(name.substr(at + kHidden.size()));
    if (!writer || *writer == own) continue;
    const bool of_this_host = writer->host == own.host && writer->pid_space == own.pid_space;
    if (is_left_over(*writer, own) || (!of_this_host && is_abandoned(dir / name)))
      found.push_back(dir / name);
  }
  for (const fs::path& path : found) fs::remove_all(path, none);
}

}  // namespace lockstep::inline internal
