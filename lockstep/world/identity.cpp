#include "lockstep/world/identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/proc.h"
#include "lockstep/error.h"
#include "lockstep/world.h"

namespace lockstep {
namespace {

std::string number(int value) {
  return value == kNotTold ? "?" : std::to_string(value);
}

/// Identity of a namespace of this process, "net:[4026531840]"; empty without namespaces.
std::string namespace_of(const char* kind) {
  std::array<char, 64> text{};
  const auto link = std::string("/proc/self/ns/") + kind;
  const auto length = ::readlink(link.c_str(), text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<size_t>(length)) : std::string();
}

/// Changes with every boot and differs between machines.
std::string boot_id() {
  need_proc();
  auto id = read_file("/proc/sys/kernel/random/boot_id", 256);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace

std::string to_string(Channel channel) {
  switch (channel) {
    case Channel::kPmix:
      return "PMIx";
    case Channel::kPmi:
      return "PMI";
    case Channel::kFolder:
      return "LOCKSTEP_RENDEZVOUS_DIR";
    case Channel::kMunge:
      return "munge";
  }
  return "?";
}

std::string describe(const Identity& id) {
  if (id.scheduler) return fmt::format("no rank: the scheduler of {}", id.size);
  return fmt::format("rank {} of {}, local rank {} of {}, node {} of {}", id.rank, id.size,
                     number(id.local_rank), number(id.local_size), number(id.node_rank),
                     number(id.num_nodes));
}

// Processes pass each other memory over unix sockets of the abstract namespace
// (comm/native/shm/door.h). That requires the same kernel and network namespace; user and PID
// namespaces may differ. They try whether it works.
std::string this_host_id() {
  if (const auto given = env("LOCKSTEP_HOST_ID")) return *given;
  return boot_id() + "/" + namespace_of("net");
}

}  // namespace lockstep
