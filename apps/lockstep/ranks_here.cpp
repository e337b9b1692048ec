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
#include "lockstep/base/proc.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/comm/flight/layout.h"
#include "lockstep/comm/flight/ring.h"

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
    const std::string_view name = entry->d_name;
    if (name.find_first_not_of("0123456789") == std::string_view::npos) take(entry->d_name);
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

/// Reads each recorder once: ranks of a host have each other's recorders open, and their own more
/// than once.
class Recorders {
 public:
  /// The ranks that run in this process itself.
  std::vector<Owner> of_process(int proc, const char* name) {
    std::vector<Owner> owners;
    const Folder files = open_folder(proc, (std::string(name) + "/fd").c_str());
    if (files == nullptr) return owners;
    const int folder = ::dirfd(files.get());
    for_each_number(files.get(), [&](const char* number) {
      std::array<char, 4096> target;
      const ssize_t size = ::readlinkat(folder, number, target.data(), target.size());
      if (size <= 0 || !is_recorder({target.data(), static_cast<size_t>(size)})) return;
      const auto owner = read(folder, number);
      if (!owner || owner->pid != std::atoi(name) || owner->pid_space != space_ || space_ == 0)
        return;
      const bool known = std::any_of(owners.begin(), owners.end(),
                                     [&](const Owner& each) { return each.rank == owner->rank; });
      if (!known) owners.push_back(*owner);
    });
    return owners;
  }

 private:
  std::optional<Owner> read(int folder, const char* number) {
    struct stat about {};
    if (::fstatat(folder, number, &about, 0) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
    const auto [known, is_new] = read_.insert({{about.st_dev, about.st_ino}, std::nullopt});
    if (is_new) known->second = owner_of(UniqueFd(::openat(folder, number, O_RDONLY | O_CLOEXEC)));
    return known->second;
  }

  const uint64_t space_ = pid_space();
  std::map<std::pair<dev_t, ino_t>, std::optional<Owner>> read_;
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
  Recorders recorders;
  for_each_number(proc.get(), [&](const char* name) {
    struct stat about {};
    const int folder = ::dirfd(proc.get());
    if (::fstatat(folder, name, &about, 0) != 0 || about.st_uid != ::geteuid()) return;
    const auto owners = recorders.of_process(folder, name);
    for (const Owner& owner : owners) {
      auto process = read_rank_process(owner.pid, owner.rank, owner.size);
      if (!process) continue;
      process->is_thread = owners.size() > 1;
      ranks.push_back(std::move(*process));
    }
  });
  return ranks;
}

}  // namespace lockstep::app
