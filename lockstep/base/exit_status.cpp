#include "lockstep/base/exit_status.h"

#include <fmt/format.h>
#include <string.h>

namespace lockstep {

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe(const ExitStatus& status) {
  return status.signal != 0 ? signal_name(status.signal) : fmt::format("exit code {}", status.code);
}

}  // namespace lockstep
