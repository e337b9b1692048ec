#include "lockstep/world/identity.h"

#include <fmt/format.h>

#include "lockstep/base/env.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/namespaces.h"
#include "lockstep/base/proc.h"
#include "lockstep/error.h"
#include "lockstep/world/host_id.h"

namespace lockstep::inline internal {
namespace {

std::string number(int value) {
  return value == kUnknownNumber ? "?" : std::to_string(value);
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
  return fmt::format("rank {} of {}, local rank {} of {}, host {} of {}", id.rank, id.size,
                     number(id.local_rank), number(id.local_size), number(id.node_rank),
                     number(id.num_nodes));
}

}  // namespace lockstep::inline internal

namespace lockstep {

// Processes pass each other memory over unix sockets of the abstract namespace
// (comm/native/shm/fd_server.h). That requires the same kernel and network namespace; user and PID
// namespaces may differ. They try whether it works.
std::string internal::this_host_id() {
  if (const auto given = env("LOCKSTEP_HOST_ID")) return *given;
  need_proc();
  const std::string boot = boot_id();
  if (boot.empty()) throw Error(ErrorCode::kIo, "read /proc/sys/kernel/random/boot_id: nothing");
  return fmt::format("{}/net:[{}]", boot, namespace_id("net"));
}

}  // namespace lockstep
