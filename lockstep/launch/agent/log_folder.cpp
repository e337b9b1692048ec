#include "lockstep/launch/agent/log_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lockstep/base/log.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr std::chrono::seconds kBetweenLooks{5};

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) throw io_error("make folder " + path);
}

bool is_full(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return false;
  return (::geteuid() == 0 ? disk.f_bfree : disk.f_bavail) == 0;
}

}  // namespace

std::string make_run_folder(const std::string& log_dir, const JobAssignment& assignment) {
  std::error_code failure;
  std::filesystem::create_directories(log_dir, failure);
  if (failure) {
    throw Error(ErrorCode::kIo, fmt::format("make folder {}: {}", log_dir, failure.message()));
  }
  std::string name = assignment.run_id;
  if (assignment.num_nodes > 1) name += fmt::format("_node{}", assignment.node_rank);
  std::string path = log_dir + "/" + name;
  for (int copy = 2; ::mkdir(path.c_str(), 0777) != 0; ++copy) {
    if (errno != EEXIST) throw io_error("make folder " + path);
    path = fmt::format("{}/{}_{}", log_dir, name, copy);
  }
  return path;
}

std::string make_attempt_folder(const std::string& run_folder, const JobAssignment& assignment) {
  auto attempt = fmt::format("{}/attempt_{}", run_folder, assignment.restart_count);
  std::error_code ignored;
  if (std::filesystem::exists(attempt, ignored)) {
    attempt += fmt::format("_generation_{}", assignment.generation);
  }
  make_folder(attempt);
  for (int local_rank = 0; local_rank < assignment.ranks.local_size; ++local_rank) {
    make_folder(fmt::format("{}/{}", attempt, local_rank));
  }
  return attempt;
}

bool ranks_write_files(const RunOptions& options, int local_size) {
  for (int local_rank = 0; local_rank < local_size; ++local_rank) {
    const Streams redirected = options.redirects.of(local_rank);
    const Streams teed = options.tee.of(local_rank);
    if ((redirected.out && !teed.out) || (redirected.err && !teed.err)) return true;
  }
  return false;
}

std::string why_no_room(const std::string& folder) {
  const UniqueFd file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  // Some file servers have no unnamed files. And where no further file fits, others may still grow.
  if (!file) return is_full(folder) ? std::strerror(ENOSPC) : "";
  const std::array<char, 4096> page{};
  if (::write(file.get(), page.data(), page.size()) == static_cast<ssize_t>(page.size())) return "";
  const int failure = errno;
  if (failure == ENOSPC || failure == EDQUOT) return std::strerror(failure);
  return is_full(folder) ? std::strerror(ENOSPC) : "";
}

void LogRoom::begin() {
  due_ = std::chrono::steady_clock::now() + kBetweenLooks;
}

void LogRoom::look(const std::string& folder) {
  begin();
  const std::string why = why_no_room(folder);
  if (why.empty()) return;
  due_.reset();
  log_warn(
      fmt::format("write to the ranks' files in {}: {}; their output there is lost until "
                  "there is room, and the job goes on",
                  folder, why));
}

}  // namespace lockstep::inline internal
