#include "lockstep/observe/append_line.h"

#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/file.h"
#include "lockstep/error.h"

namespace lockstep {

void append_line(int fd, const std::string& line, const std::string& what) {
  struct stat before {};
  if (::fstat(fd, &before) != 0) throw io_error("stat " + what);
  const std::string bytes = line + "\n";
  try {
    write_all(fd, bytes.data(), bytes.size(), what);
  } catch (const Error&) {
    (void)!::ftruncate(fd, before.st_size);
    throw;
  }
}

}  // namespace lockstep
