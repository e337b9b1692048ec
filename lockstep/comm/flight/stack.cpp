#include "lockstep/comm/flight/stack.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <string_view>

#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/comm/flight/process_image.h"
#include "lockstep/comm/flight/process_state.h"

namespace lockstep::inline internal {
namespace {

/// Shown of a long stack: the present place, and the way to it.
constexpr size_t kInnermost = 5;
constexpr size_t kOutermost = 5;

Stack look(int pid) {
  Stack stack;
  auto image = ProcessImage::of(pid, &stack.why_not);
  if (image) stack.functions = image->functions(image->frames(&stack.why_not));
  return stack;
}

/// Removes the frames before main. main itself may be missing: it may end with a jump.
std::vector<std::string> without_start(std::vector<std::string> functions) {
  const auto main = std::find(functions.begin(), functions.end(), "main");
  if (main != functions.end()) functions.erase(main + 1, functions.end());
  const std::set<std::string_view> start = {"_start", "__libc_start_main", "[libc.so.6]"};
  while (functions.size() > 1 && start.count(functions.back()) != 0) functions.pop_back();
  return functions;
}

}  // namespace

Stack stack_of(int pid, std::chrono::milliseconds limit) {
  if (pid == ::getpid()) return {{}, "a process cannot read its own"};
  // A process that waits for a disk does not stop until the disk answers; and ptrace is for one
  // thread.
  auto task = std::make_shared<std::packaged_task<Stack()>>([pid] { return look(pid); });
  auto stack = task->get_future();
  start_thread_with_signals_blocked([task] { (*task)(); }).detach();
  if (stack.wait_for(limit) == std::future_status::ready) return stack.get();
  return {{},
          fmt::format("it is {} and was not reached in {} ms", process_state(pid), limit.count())};
}

void admit_siblings() {
  ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(::getppid()), 0, 0, 0);
}

std::string to_string(const Stack& stack) {
  if (stack.functions.empty()) return fmt::format("not to be had ({})", stack.why_not);
  const auto shown = without_start(stack.functions);
  std::string text;
  for (size_t i = 0; i < shown.size(); ++i) {
    const bool left_out = shown.size() > kInnermost + kOutermost + 1 && i >= kInnermost &&
                          i + kOutermost < shown.size();
    if (left_out && i > kInnermost) continue;
    text += fmt::format("{}{}", i == 0 ? "" : " < ", left_out ? "..." : shown[i]);
  }
  return text;
}

}  // namespace lockstep::inline internal
