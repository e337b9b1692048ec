#include "lockstep/base/pipe_name.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace lockstep {

std::string pipe_name(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return "";
  return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

}  // namespace lockstep
