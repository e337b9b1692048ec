#include "lockstep/observe/set_aside.h"

#include <fmt/format.h>

#include "lockstep/base/log.h"
#include "lockstep/error.h"

namespace lockstep {

void set_aside(const std::filesystem::path& path, const std::string& why) {
  namespace fs = std::filesystem;
  fs::path target;
  for (int number = 1; target.empty() || fs::exists(fs::symlink_status(target)); ++number) {
    target = fmt::format("{}.{}", path.string(), number);
  }
  std::error_code error;
  fs::rename(path, target, error);
  if (error) {
    throw Error(ErrorCode::kIo,
                fmt::format("move {} to {}: {}", path.string(), target.string(), error.message()));
  }
  log_warn(fmt::format("{}; it is now {}, and the run goes on without it", why, target.string()));
}

}  // namespace lockstep
