#include "lockstep/base/host_name.h"

#include <unistd.h>

#include <array>

#include "lockstep/base/file.h"

namespace lockstep::inline internal {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string boot_id() {
  std::string id = read_if_there("/proc/sys/kernel/random/boot_id", 256);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace lockstep::inline internal
