#include "apps/lockstep/ranks_here.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/base/namespaces.h"
#include "lockstep/base/number.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/flight/layout.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/launch/job/progress_memory.h"

namespace lockstep::app {
namespace {

/// The rank that a recorder belongs to.
struct Owner {
  int pid = 0;
  int rank = 0;
  int size = 0;
  uint64_t pid_space = 0;
};

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

/// Opens a folder below `parent`; null if it is gone, or another user's.
Folder open_folder(int parent, const char* name) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  DIR* const folder = ::fdopendir(fd);
  if (folder == nullptr) ::close(fd);
  return Folder(folder);
}

void for_each_number(DIR* folder, const std::function<void(const char* name)>& take) {
  while (const dirent* entry = ::readdir(folder)) {
    if (all_digits(entry->d_name)) take(entry->d_name);
  }
}

template <class T>
T field(const std::array<std::byte, sizeof(FlightHeader)>& header, size_t offset) {
  T value;
  std::memcpy(&value, header.data() + offset, sizeof value);
  return value;
}

std::optional<Owner> owner_of(const UniqueFd& recorder) {
  std::array<std::byte, sizeof(FlightHeader)> header;
  constexpr size_t kNeeded = offsetof(FlightHeader, groups);
  if (!recorder || ::pread(recorder.get(), header.data(), kNeeded, 0) != ssize_t{kNeeded})
    return std::nullopt;
  if (field<uint64_t>(header, offsetof(FlightHeader, magic)) != kFlightMagic) return std::nullopt;
  return Owner{field<int32_t>(header, offsetof(FlightHeader, pid)),
               field<int32_t>(header, offsetof(FlightHeader, rank)),
               field<int32_t>(header, offsetof(FlightHeader, size)),
               field<uint64_t>(header, offsetof(FlightHeader, pid_space))};
}

/// A file that a process has open.
struct OpenFile {
  int folder;          ///< Its /proc/PID/fd, open.
  const char* number;  ///< The descriptor, which is a link there.

  std::string target() const {
    std::array<char, 4096> text;
    const ssize_t size = ::readlinkat(folder, number, text.data(), text.size());
    return size <= 0 ? "" : std::string(text.data(), static_cast<size_t>(size));
  }
  /// Whether it can be opened without an effect on others, as a pipe cannot.
  bool is_regular(struct stat* about) const {
    return ::fstatat(folder, number, about, 0) == 0 && S_ISREG(about->st_mode);
  }
  UniqueFd open() const {
    return UniqueFd(::openat(folder, number, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
};

bool is_own_steps(const std::string& target) {
  return target.starts_with(std::string("/memfd:") + kOwnStepsName);
}

std::optional<OwnReport> report_in(const OpenFile& file) {
  struct stat about {};
  return file.is_regular(&about) ? read_own_steps(file.open().get()) : std::nullopt;
}

/// What the open files of a process say of its ranks.
struct OpenHere {
  std::vector<Owner> owners;       ///< The ranks that run in it.
  std::optional<RankSteps> steps;  ///< Its report.

  void add(const Owner& owner) {
    const bool known = std::any_of(owners.begin(), owners.end(),
                                   [&](const Owner& each) { return each.rank == owner.rank; });
    if (!known) owners.push_back(owner);
  }
};

class Processes {
 public:
  /// Nothing of another process: ranks of a host have each other's recorders open, and a forked
  /// child has all that its parent had.
  OpenHere look_into(int proc, const char* name) {
    OpenHere found;
    const Folder files = open_folder(proc, (std::string(name) + "/fd").c_str());
    if (files == nullptr) return found;
    std::optional<OwnNumber> own;
    const auto is_own = [&](int pid, uint64_t space) {
      if (space == 0 || space_ == 0) return false;
      if (space == space_) return pid == std::atoi(name);
      if (!own) own = own_number(std::atoi(name));
      return pid == own->pid && space == own->space;
    };
    for_each_number(files.get(), [&](const char* number) {
      const OpenFile file = {::dirfd(files.get()), number};
      const std::string target = file.target();
      if (is_recorder(target)) {
        const auto owner = owner_in(file);
        if (owner && is_own(owner->pid, owner->pid_space)) found.add(*owner);
      } else if (is_own_steps(target)) {
        const auto report = report_in(file);
        if (report && is_own(report->pid, report->pid_space)) found.steps = report->steps;
      }
    });
    return found;
  }

 private:
  /// Reads each recorder once: many processes have it open, and its own more than once.
  std::optional<Owner> owner_in(const OpenFile& file) {
    struct stat about {};
    if (!file.is_regular(&about)) return std::nullopt;
    const auto [known, is_new] = owners_.insert({{about.st_dev, about.st_ino}, std::nullopt});
    if (is_new) known->second = owner_of(file.open());
    return known->second;
  }

  const uint64_t space_ = pid_space();
  std::map<std::pair<dev_t, ino_t>, std::optional<Owner>> owners_;
};

}  // namespace

bool is_recorder(std::string target) {
  // The kernel's mark for a file whose name another file has now.
  constexpr std::string_view kDeleted = " (deleted)";
  if (target.ends_with(kDeleted)) target.resize(target.size() - kDeleted.size());
  return target.starts_with(std::string("/memfd:") + kFlightMemfd) ||
         target.ends_with(kFlightSuffix);
}

std::vector<RankProcess> ranks_here() {
  need_proc();
  std::vector<RankProcess> ranks;
  const Folder proc = open_folder(AT_FDCWD, "/proc");
  if (proc == nullptr) return ranks;
  Processes processes;
  for_each_number(proc.get(), [&](const char* name) {
    struct stat about {};
    const int folder = ::dirfd(proc.get());
    if (::fstatat(folder, name, &about, 0) != 0 || about.st_uid != ::geteuid()) return;
    const OpenHere found = processes.look_into(folder, name);
    for (const Owner& owner : found.owners) {
      auto process = read_rank_process(std::atoi(name), owner.rank, owner.size);
      if (!process) continue;
      process->is_thread = found.owners.size() > 1;
      process->steps = found.steps;
      ranks.push_back(std::move(*process));
    }
  });
  return ranks;
}

}  // namespace lockstep::app
