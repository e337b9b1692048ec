#include "lockstep/data/fetch/folder_turn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/error.h"

namespace lockstep {

UniqueFd take_turn(const std::filesystem::path& folder, Deadline deadline) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw io_error("open " + folder.string());
  bool said = false;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw io_error("lock " + folder.string());
    if (deadline.passed()) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("another process is still preparing data in {}", folder.string()));
    }
    if (!std::exchange(said, true)) {
      log_info(
          fmt::format("waiting for another process that prepares data in {}", folder.string()));
    }
    std::this_thread::sleep_for(50ms);
  }
  return fd;
}

}  // namespace lockstep
