#include "lockstep/world/lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "lockstep/base/log.h"
#include "lockstep/error.h"

namespace lockstep {

std::string wait_for_name(const std::string& host, Deadline deadline, const NameWait& how) {
  std::string short_name = host.substr(0, host.find('.'));
  const auto began = std::chrono::steady_clock::now();
  const auto patience = Deadline::after(how.say_after);
  bool said = false;
  while (true) {
    const bool last = deadline.passed();  // a lookup that takes long is not the only one
    if (how.known(host)) return host;
    if (short_name != host && how.known(short_name)) return short_name;
    if (last) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
      throw Error(ErrorCode::kTimeout,
                  fmt::format("host '{}', where the ranks meet, is still unknown here after {:.1f} "
                              "s: check the name, or give its address as a number",
                              host, spent.count()));
    }
    if (patience.passed() && !said) {
      log_info(fmt::format("waits for the name of host '{}', which is not known here yet", host));
      said = true;
    }
    std::this_thread::sleep_for(std::min(how.pause, deadline.left()));
  }
}

}  // namespace lockstep
