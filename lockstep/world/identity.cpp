#include "lockstep/world/identity.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {
namespace {

std::string number(int value) {
  return value == kNotTold ? "?" : std::to_string(value);
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

}  // namespace lockstep
