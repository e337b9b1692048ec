#include "apps/lockstep/record_writers.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "lockstep/base/proc.h"
#include "lockstep/comm/flight/process_state.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

/// The kernel's number of its first pid namespace, in which every process has a number.
constexpr uint64_t kFirstSpace = 0xEFFFFFFC;

/// Whether process `pid` lives and has the file open; nothing if this user may not know. The number
/// alone could by now belong to another process.
std::optional<bool> has_open(int pid, const fs::path& path) {
  // Of other users' processes /proc may show nothing at all (hidepid).
  if (::kill(pid, 0) != 0 && errno == EPERM &&
      ::access(fmt::format("/proc/{}", pid).c_str(), F_OK) != 0)
    return std::nullopt;
  if (process_state(pid) == "dead") return false;
  std::error_code failure;
  fs::directory_iterator it(fmt::format("/proc/{}/fd", pid), failure);
  if (failure == std::errc::permission_denied) return std::nullopt;
  for (const fs::directory_iterator end; !failure && it != end; it.increment(failure)) {
    std::error_code gone;
    if (fs::equivalent(it->path(), path, gone)) return true;
  }
  return false;
}

}  // namespace

bool RecordWriters::look_at(FlightRecord& record, const fs::path& path) {
  const auto here = number_here(record, path);
  std::optional<bool> lives;
  if (here) lives = *here == 0 ? false : has_open(*here, path);
  // Without a numbering the number is a guess, which only the open file confirms.
  if (lives && !*lives && record.pid_space == 0) lives.reset();
  if (!lives && record.exit_code >= 0) lives = false;  // the record has its end
  if (!lives) return false;
  if (*lives) record.pid = *here;
  record.process = *lives ? process_state(*here) : "dead";
  record.alive = record.process != "dead";
  return true;
}

/// Of the process that wrote the recorder at `path`; 0 if it has ended, nothing if it is not
/// visible.
std::optional<int> RecordWriters::number_here(const FlightRecord& record, const fs::path& path) {
  if (record.pid_space == 0 || record.pid_space == space_) return record.pid;
  if (space_ == 0) return std::nullopt;
  if (numbers_.empty()) read_numbers();
  const auto found = numbers_.find({record.pid_space, record.pid});
  if (found != numbers_.end()) return found->second;
  if (sees_all(record.pid_space, path)) return 0;
  return std::nullopt;
}

void RecordWriters::read_numbers() {
  for (const pid_t pid : processes()) {
    const OwnNumber own = own_number(pid);
    if (own.space == 0) continue;
    numbers_[{own.space, own.pid}] = pid;
    spaces_.insert(own.space);
  }
}

/// Whether each process of that numbering and of the file's owner has a number here. Of other
/// users' processes only root learns the numbering.
bool RecordWriters::sees_all(uint64_t space, const fs::path& path) const {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return false;
  if (::geteuid() != 0 && !is_own_user(about.st_uid)) return false;
  return space_ == kFirstSpace || spaces_.count(space) != 0;
}

}  // namespace lockstep::app
