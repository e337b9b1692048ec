#include "lockstep/base/holder.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <sstream>

namespace lockstep {

std::string process_text(int pid) {
  std::ifstream in(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(in, name);
  return name.empty() ? fmt::format("process {}", pid) : fmt::format("process {} ({})", pid, name);
}

std::string lock_holder(const struct stat& status) {
  const std::string file = fmt::format("{:02x}:{:02x}:{}", ::major(status.st_dev),
                                       ::minor(status.st_dev), status.st_ino);
  std::ifstream in("/proc/locks");
  // "1: FLOCK  ADVISORY  WRITE 3819 00:2e:1234 0 EOF"; one that waits has "->" after its number.
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, access, place;
    int pid = 0;
    if (!(words >> number >> kind >> advisory >> access >> pid >> place)) continue;
    if (kind == "FLOCK" && place == file && pid > 0) return process_text(pid);
  }
  return "";
}

}  // namespace lockstep
