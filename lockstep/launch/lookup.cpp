#include "lockstep/launch/lookup.h"

#include <fmt/format.h>

#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"

namespace lockstep {

std::string wait_for_name(const std::string& host, Deadline deadline) {
  const std::string short_name = host.substr(0, host.find('.'));
  const auto patience = Deadline::after(2s);
  bool said = false;
  while (true) {
    if (can_resolve(host)) return host;
    if (short_name != host && can_resolve(short_name)) return short_name;
    if (deadline.passed()) {
      throw Error(
          ErrorCode::kTimeout,
          fmt::format("host '{}', where the ranks meet, is unknown here: set MASTER_ADDR to "
                      "rank 0's address as a number",
                      host));
    }
    if (patience.passed() && !said) {
      log_warn(fmt::format("host '{}' is not known yet; asking again", host));
      said = true;
    }
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(200ms, deadline.left()));
  }
}

}  // namespace lockstep
