#include <unistd.h>

#include <array>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/launch/world.h"

namespace lockstep {
namespace {

/// Identity of a namespace of this process, "pid:[4026531836]"; empty where there are none.
std::string namespace_of(const char* kind) {
  std::array<char, 64> text{};
  const auto link = std::string("/proc/self/ns/") + kind;
  const auto length = ::readlink(link.c_str(), text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<size_t>(length)) : std::string();
}

/// Changes with every boot and differs between machines.
std::string boot_id() {
  auto id = read_file("/proc/sys/kernel/random/boot_id", 256);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace

// Memory is shared by opening /proc/PID/fd/N of the peer. That takes the same kernel, the same
// numbering of processes, and the same user as both sides see it.
std::string this_host_id() {
  if (const auto given = env("LOCKSTEP_HOST_ID")) return *given;
  return boot_id() + "/" + namespace_of("pid") + "/" + namespace_of("user") +
         "/uid:" + std::to_string(::geteuid());
}

}  // namespace lockstep
