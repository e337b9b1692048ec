#include "lockstep/launch/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

#include "lockstep/base/env.h"
#include "lockstep/base/unique_fd.h"

namespace lockstep {
namespace {

/// The variable may be inherited from a job that is over, and the number reused by then.
bool is_step_board(const std::string& path) {
  std::array<char, 64> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size() - 1);
  return size > 0 &&
         std::string(target.data()).rfind(std::string("/memfd:") + kStepBoardName, 0) == 0;
}

void write_step_board(char mark) {
  const std::string path = env_or("LOCKSTEP_STEPS", "");
  if (path.empty() || !is_step_board(path)) return;
  const UniqueFd board(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const int local_rank = std::atoi(env_or("LOCKSTEP_LOCAL_RANK", "0").c_str());
  // What cannot be told is not known to the agent: no reason to end a training.
  if (board) [[maybe_unused]]
    const ssize_t put = ::pwrite(board.get(), &mark, 1, local_rank);
}

}  // namespace

void expect_steps() {
  write_step_board(kExpectsSteps);
}

void report_step() {
  static std::atomic<bool> reported{false};
  if (reported.load(std::memory_order_relaxed) || reported.exchange(true)) return;
  write_step_board(kStepped);
}

}  // namespace lockstep
