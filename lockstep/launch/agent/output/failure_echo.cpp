#include "lockstep/launch/agent/output/failure_echo.h"

namespace lockstep {

FailureEcho::FailureEcho(int local_rank, const std::vector<std::string>& stderr_tail)
    : local_rank_(local_rank) {
  if (stderr_tail.empty()) return;
  const std::string& last = stderr_tail.back();
  if (last.find(": error: ") != std::string::npos) last_line_ = last;
}

bool FailureEcho::repeats(int local_rank, int stream, const std::string& text) const {
  return !last_line_.empty() && stream == 2 && local_rank != local_rank_ && text == last_line_;
}

}  // namespace lockstep
