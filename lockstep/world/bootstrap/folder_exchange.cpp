#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/file.h"
#include "lockstep/base/holder.h"
#include "lockstep/base/in_child.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/world/bootstrap/exchange.h"
#include "lockstep/world/bootstrap/meet.h"

namespace lockstep::inline internal {
namespace {

bool is_private(const struct stat& file) {
  return S_ISREG(file.st_mode) && file.st_uid == ::geteuid() && (file.st_mode & 077) == 0;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// The line is in a file that only its owner can read (it contains the secret); rank 0 removes it.
class FolderExchange final : public RankExchange {
 public:
  FolderExchange(std::filesystem::path path, bool alone) : path_(std::move(path)), alone_(alone) {}
  ~FolderExchange() override {
    // The next job of this name may have put its own file there meanwhile.
    struct stat now {};
    if (published_ && ::lstat(path_.c_str(), &now) == 0 && is_same_file(now, written_))
      ::unlink(path_.c_str());
  }

  void publish(const std::string& line, Deadline) override {
    // Made with its mode, so that others can never open it. Not named after the pid: containers
    // reuse the same pids.
    const std::string hidden = path_.string() + ".tmp-" + make_job_secret().substr(0, 16);
    UniqueFd fd(::open(hidden.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (!fd) throw io_error("make " + hidden);
    try {
      ::flock(fd.get(), LOCK_EX | LOCK_NB);  // no error if the folder has no locks
      write_all(fd.get(), line.data(), line.size(), hidden);
      if (::fstat(fd.get(), &written_) != 0) throw io_error("stat " + hidden);
      check_private();
      if (!alone_ || !take_name_alone(hidden)) {
        if (::rename(hidden.c_str(), path_.c_str()) != 0) throw io_error("rename " + hidden);
      }
    } catch (const Error&) {
      ::unlink(hidden.c_str());
      throw;
    }
    published_ = true;
    held_ = std::move(fd);
    not_in_child_.emplace(held_.get());
  }

  std::string receive(Deadline deadline) override {
    while (true) {
      if (auto line = read_line()) return std::move(*line);
      if (deadline.passed())
        throw Error(ErrorCode::kTimeout, "rank 0 has not written " + path_.string() +
                                             "; is it running, and is the folder the same there?");
      std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(20ms, deadline.left()));
    }
  }

  bool may_change() const override { return true; }

 private:
  /// The other ranks would refuse it, and removing it would not help.
  void check_private() const {
    if (is_private(written_)) return;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} gives user {}'s files to user {} with mode {:o}, as NFS does with "
                    "root_squash, and CIFS: it can keep no secret, so LOCKSTEP_RENDEZVOUS_DIR "
                    "must be another folder",
                    path_.parent_path().string(), ::geteuid(), written_.st_uid,
                    written_.st_mode & 07777));
  }

  /// If two ranks come at once, one gets the name. False: a rename is needed, as links are not
  /// supported here, or something other than a file is in the way.
  bool take_name_alone(const std::string& hidden) const {
    while (::link(hidden.c_str(), path_.c_str()) != 0) {
      const bool is_there = errno == EEXIST;
      if (!remove_dead() || !is_there) return false;
    }
    ::unlink(hidden.c_str());
    return true;
  }

  /// A live job's rank 0 holds a lock on its file; a file without a lock is removed. False: it is
  /// no file. Errors: kInvalidArgument (the job lives).
  bool remove_dead() const {
    const UniqueFd fd(::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return errno == ENOENT;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse_other(fd.get());
    // Only the lock's holder may remove the file; by now it may be the next job's.
    struct stat locked {
    }, now{};
    const bool same = ::fstat(fd.get(), &locked) == 0 && ::lstat(path_.c_str(), &now) == 0 &&
                      is_same_file(locked, now);
    return !same || ::unlink(path_.c_str()) == 0;
  }

  /// Names the job whose file is open at `fd`.
  [[noreturn]] void refuse_other(int fd) const {
    struct stat status {};
    std::string holder = ::fstat(fd, &status) == 0 ? lock_holder(status) : "";
    if (!holder.empty()) holder = ", whose rank 0 is " + holder + " of this host,";
    if (holder.empty()) {
      const auto place = place_of(fd);
      if (!place.empty()) holder = ", whose rank 0 is at " + place + ",";
    }
    throw Error(ErrorCode::kInvalidArgument,
                "another job" + holder + " meets by " + path_.string() +
                    " now; jobs of one size whose launcher gives them no name need a "
                    "LOCKSTEP_RENDEZVOUS_DIR each, or a MASTER_PORT each");
  }

  /// Empty if another build has written it.
  static std::string place_of(int fd) {
    std::array<char, kMaxExchangeBytes> bytes;
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
    try {
      const std::string line(bytes.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
      return to_string(parse_bootstrap_record(line).endpoints.front());
    } catch (const Error&) {
      return "";
    }
  }

  /// The content of the file, which only this user can have written: the checks apply to the open
  /// file. Errors: kInvalidArgument, kIo.
  std::optional<std::string> read_line() const {
    const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd && (errno == ENOENT || errno == ESTALE)) return std::nullopt;
    if (!fd && errno != ELOOP && errno != EACCES) throw io_error("open " + path_.string());
    struct stat status {};
    const bool known = fd && ::fstat(fd.get(), &status) == 0;
    if (fd && !known && errno == ESTALE) return std::nullopt;  // another has taken the name
    if (!known || !is_private(status)) {
      throw Error(ErrorCode::kInvalidArgument,
                  path_.string() + " is not a file of mode 600 of this user: remove it");
    }
    std::array<char, kMaxExchangeBytes + 1> bytes;  // one more: a longer line is invalid
    const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == ESTALE) return std::nullopt;
    if (got < 0) throw io_error("read " + path_.string());
    return std::string(bytes.data(), static_cast<size_t>(got));
  }

  std::filesystem::path path_;
  bool alone_;
  bool published_ = false;
  UniqueFd held_;  ///< The file, locked.
  std::optional<NotInChild> not_in_child_;
  struct stat written_ {};
};

}  // namespace

std::shared_ptr<RankExchange> open_folder_exchange(const std::string& folder,
                                                   const std::string& name, bool alone) {
  if (!std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::kInvalidArgument,
                "environment variable LOCKSTEP_RENDEZVOUS_DIR: '" + folder + "' is not a folder");
  }
  return std::make_shared<FolderExchange>(std::filesystem::path(folder) / name, alone);
}

}  // namespace lockstep::inline internal
