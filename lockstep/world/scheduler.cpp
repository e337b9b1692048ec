#include "lockstep/world/scheduler.h"

#include <fmt/format.h>

#include <thread>

#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

/// A job may be short.
constexpr std::chrono::milliseconds kAwaitEvery{20};
constexpr std::chrono::milliseconds kLookEvery{250};
/// A rank 0 that is too busy to take one connection is still there.
constexpr int kVainLooks = 4;

bool somebody_is_at(const Endpoint& place) {
  return somebody_listens(place, Deadline::after(std::chrono::seconds(2)));
}

}  // namespace

void stay_for_ranks(const Endpoint& place, Deadline deadline) {
  while (!somebody_is_at(place)) {
    if (deadline.passed()) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("MindSpore's scheduler waits for the ranks, but rank 0 does not "
                              "serve at {}",
                              to_string(place)));
    }
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(kAwaitEvery, deadline.left()));
  }
  log_info(fmt::format("MindSpore's scheduler: the ranks meet at {}; it stays until they are done",
                       to_string(place)));
  for (int vain = 0; vain < kVainLooks; vain = somebody_is_at(place) ? 0 : vain + 1)
    std::this_thread::sleep_for(kLookEvery);
}

}  // namespace lockstep
