#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/mutex.h"
#include "lockstep/comm/flight/process_image.h"
#include "lockstep/comm/flight/stack.h"
#include "lockstep/deadline.h"

namespace lockstep::inline internal {
namespace {

/// Data that the handler writes; one look at a time.
struct Caught {
  std::array<uint64_t, 256> places;
  size_t count = 0;
  std::atomic<bool> done = true;  // false: the handler may write
};
Caught caught;

_Unwind_Reason_Code add_place(_Unwind_Context* context, void* /*argument*/) {
  int is_activation = 0;
  const auto place = static_cast<uint64_t>(_Unwind_GetIPInfo(context, &is_activation));
  // The interrupted frame: the frames so far are the handler and the way to it.
  if (is_activation != 0) caught.count = 0;
  // A return address may lie behind the end of the calling function.
  if (place != 0) caught.places[caught.count++] = is_activation != 0 ? place : place - 1;
  return caught.count < caught.places.size() ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/// Walks without locks and allocation: glibc finds tables in this way since 2.35.
void write_down_where(int /*signal*/) {
  const int before = errno;
  if (caught.done.load(std::memory_order_acquire)) return;
  _Unwind_Backtrace(add_place, nullptr);
  caught.done.store(true, std::memory_order_release);
  errno = before;
}

bool send_to_main(int signal) {
  caught.count = 0;
  caught.done.store(false, std::memory_order_release);
  const pid_t pid = ::getpid();
  if (::syscall(SYS_tgkill, pid, pid, signal) == 0) return true;
  caught.done.store(true, std::memory_order_release);
  return false;
}

/// Sends the signal to the main thread and waits for its handler. Empty if it does not run in time:
/// the thread blocks the signal, or never leaves the kernel. The signal is then still pending, and
/// the next look waits for the same one: a second signal could run the handler beside it.
std::vector<uint64_t> interrupt_main(int signal, std::chrono::milliseconds limit) {
  const auto end = Deadline::after(limit);
  if (caught.done.load(std::memory_order_acquire) && !send_to_main(signal)) return {};
  while (!caught.done.load(std::memory_order_acquire)) {
    if (end.passed()) return {};
    std::this_thread::sleep_for(1ms);
  }
  return {caught.places.begin(), caught.places.begin() + static_cast<ptrdiff_t>(caught.count)};
}

}  // namespace

Stack own_stack(std::chrono::milliseconds limit) {
  static Mutex mutex;
  const MutexLock lock(mutex);
  const int signal = SIGRTMAX - 3;
  struct sigaction before {};
  struct sigaction action {};
  action.sa_handler = write_down_where;
  action.sa_flags = SA_RESTART;
  const bool asked = ::sigaction(signal, nullptr, &before) == 0;
  if (!asked || (before.sa_handler != SIG_DFL && before.sa_handler != write_down_where))
    return {{}, "the program has a handler for SIGRTMAX - 3"};
  Stack stack;
  auto image = ProcessImage::of(::getpid(), &stack.why_not);
  if (!image) return stack;
  ::sigaction(signal, &action, nullptr);
  const auto places = interrupt_main(signal, limit);
  // A late signal must find a handler: the handler stays if the signal has not arrived.
  before.sa_handler = SIG_DFL;
  if (!places.empty()) ::sigaction(signal, &before, nullptr);
  if (places.empty()) stack.why_not = "the main thread takes no signal";
  stack.functions = image->functions(places);
  return stack;
}

}  // namespace lockstep::inline internal
