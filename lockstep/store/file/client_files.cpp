#include "lockstep/store/file/client_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "lockstep/base/folder.h"
#include "lockstep/base/number.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr std::string_view kPrefix = "lockstep-client-";
constexpr std::string_view kJournalName = "lockstep-store";

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::optional<uint64_t> client_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + 16) return std::nullopt;
  return as_number<uint64_t>(std::string_view(name).substr(kPrefix.size()), 16);
}

uint64_t random_client() {
  std::random_device random;
  return (static_cast<uint64_t>(random()) << 32 | random()) | 1;
}

}  // namespace

ClientFiles::ClientFiles(std::filesystem::path folder)
    : folder_(std::move(folder)), id_(random_client()) {
  constexpr int64_t kNfs = 0x6969;
  struct statfs system {};
  is_remote_ = ::statfs(folder_.c_str(), &system) == 0 && system.f_type == kNfs;
}

ClientFiles::~ClientFiles() {
  if (fd_ && generation_ == fork_generation()) remove(id_);
}

std::filesystem::path ClientFiles::path_of(uint64_t client) const {
  return folder_ / fmt::format("{}{:016x}", kPrefix, client);
}

void ClientFiles::create_own() {
  const auto path = path_of(id_);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) throw io_error("make " + path.string());
  auto lock = whole_file(F_WRLCK);
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) throw io_error("lock " + path.string());
  fd_ = std::move(fd);
  not_in_child_.emplace(fd_.get());
  write_heartbeat();
}

void ClientFiles::write_heartbeat() {
  ++heartbeats_;
  if (::pwrite(fd_.get(), &heartbeats_, sizeof heartbeats_, 0) != sizeof heartbeats_)
    throw io_error("write " + path_of(id_).string());
  if (is_remote_) ::fdatasync(fd_.get());
}

std::optional<uint64_t> ClientFiles::read_heartbeat(uint64_t client) const {
  const auto path = path_of(client);
  // Read-only: its close must not look like the end of the client.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) throw io_error("open " + path.string());
  auto lock = whole_file(F_WRLCK);
  if (::fcntl(fd.get(), F_OFD_GETLK, &lock) != 0) throw io_error("look at " + path.string());
  if (lock.l_type == F_UNLCK) return std::nullopt;
  uint64_t heartbeats = 0;
  if (::pread(fd.get(), &heartbeats, sizeof heartbeats, 0) < 0)
    throw io_error("read " + path.string());
  return heartbeats;
}

void ClientFiles::remove(uint64_t client) const {
  ::unlink(path_of(client).c_str());
}

std::vector<uint64_t> ClientFiles::others() const {
  std::vector<uint64_t> alive;
  for (const std::string& name : list_folder(folder_)) {
    // NFS renames files that are removed while open to names that begin with a dot.
    if (name == kJournalName || name.starts_with('.')) continue;
    const auto client = client_of(name);
    if (!client) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} is not of a store; a store wants a folder of its own",
                              (folder_ / name).string()));
    }
    if (*client == id_) continue;
    if (read_heartbeat(*client)) {
      alive.push_back(*client);
    } else {
      remove(*client);
    }
  }
  return alive;
}

}  // namespace lockstep::inline internal
