#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/launch/exchange/exchange.h"

namespace lockstep {
namespace {

/// The line is in a file that only its owner can read (it holds the secret), which rank 0 removes.
class FolderExchange final : public Exchange {
 public:
  explicit FolderExchange(std::filesystem::path path) : path_(std::move(path)) {}
  ~FolderExchange() override {
    std::error_code ignored;
    if (published_) std::filesystem::remove(path_, ignored);
  }

  void publish(const std::string& line, Deadline) override {
    // Made with its mode, so that there is no moment in which others can open it.
    const std::string hidden = path_.string() + ".tmp-" + std::to_string(::getpid());
    const UniqueFd fd(::open(hidden.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!fd) throw io_error("make " + hidden);
    write_all(fd.get(), line.data(), line.size(), hidden);
    if (::rename(hidden.c_str(), path_.c_str()) != 0) throw io_error("rename " + hidden);
    published_ = true;
  }

  std::string receive(Deadline deadline) override {
    while (true) {
      if (is_ours()) {
        try {
          return read_file(path_, kMaxExchangeBytes);
        } catch (const Error& error) {
          if (error.code() != ErrorCode::kNotFound) throw;
        }
      }
      if (deadline.passed())
        throw Error(ErrorCode::kTimeout, "rank 0 has not written " + path_.string() +
                                             "; is it running, and is the folder the same there?");
      std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(20ms, deadline.left()));
    }
  }

  bool may_change() const override { return true; }

 private:
  /// Nobody else wrote it. Errors: kInvalidArgument.
  bool is_ours() const {
    struct stat status {};
    if (::lstat(path_.c_str(), &status) != 0) return false;
    if (S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0)
      return true;
    throw Error(ErrorCode::kInvalidArgument,
                path_.string() + " is not a file of mode 600 of this user: remove it");
  }

  std::filesystem::path path_;
  bool published_ = false;
};

}  // namespace

std::shared_ptr<Exchange> open_folder_exchange(const std::string& folder, const std::string& name) {
  if (!std::filesystem::is_directory(folder)) {
    throw Error(ErrorCode::kInvalidArgument,
                "environment variable LOCKSTEP_RENDEZVOUS_DIR: '" + folder + "' is not a folder");
  }
  return std::make_shared<FolderExchange>(std::filesystem::path(folder) / name);
}

}  // namespace lockstep
