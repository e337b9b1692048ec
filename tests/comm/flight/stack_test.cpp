#include "lockstep/comm/flight/stack.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "lockstep/comm/flight/process_image.h"
#include "lockstep/comm/flight/process_state.h"

namespace lockstep {
namespace testing {

// Not inlined, nor entered by a jump: the stack must contain them. Their results are used after the
// calls for the same reason.
__attribute__((noinline)) int waits_in_a_call(int depth) {
  ::pause();
  return depth + 1;
}
__attribute__((noinline)) int loops_for_ever(int depth) {
  volatile bool on = true;
  while (on) {
  }
  return depth;
}
std::atomic<bool> found_out;
__attribute__((noinline)) int waits_until_found_out(int depth) {
  const timespec moment{0, 1000000};
  // Not sleep_for: without optimisation it adds a frame, and a stack's text shows only its top
  // five.
  while (!found_out) ::nanosleep(&moment, nullptr);
  return depth;
}
/// A page that belongs to no file. If possible it lies close behind a file, which libdw takes for a
/// part of the file.
void* executable_page() {
  constexpr int kRights = PROT_READ | PROT_WRITE | PROT_EXEC;
  constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(".so") == std::string::npos) continue;
    const uint64_t end = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    void* const behind = reinterpret_cast<void*>(end);  // NOLINT(performance-no-int-to-ptr)
    void* const page = ::mmap(behind, 4096, kRights, kKind | MAP_FIXED_NOREPLACE, -1, 0);
    if (page != MAP_FAILED) return page;
  }
  return ::mmap(nullptr, 4096, kRights, kKind, -1, 0);
}
/// Code that a program generates at run time, without tables.
__attribute__((noinline)) int calls_generated(std::string_view code, int depth) {
  void* const page = executable_page();
  if (page == MAP_FAILED) std::abort();
  code.copy(static_cast<char*>(page), code.size());
  return reinterpret_cast<int (*)()>(page)() + depth;
}
__attribute__((noinline)) int calls_a_generated_loop(int depth) {
  return calls_generated("\xEB\xFE", depth) + 1;  // jmp to itself
}
__attribute__((noinline)) int calls_a_kernel(int depth) {
  // push rbx; push rbp; xor ebp, ebp; jmp to itself: as oneDNN's begin.
  return calls_generated("\x53\x55\x31\xED\xEB\xFE", depth) + 1;
}
__attribute__((noinline)) int calls_a_framed_loop(int depth) {
  // push rbp; mov rbp, rsp; push rax; jmp to itself.
  return calls_generated("\x55\x48\x89\xE5\x50\xEB\xFE", depth) + 1;
}
__attribute__((noinline)) int goes_down(int depth, int (*body)(int)) {
  return 1 + (depth == 0 ? body(depth) : goes_down(depth - 1, body));
}

namespace {

using namespace std::chrono_literals;

constexpr auto kLimit = 5s;

/// A child process that runs `body`.
class Child {
 public:
  explicit Child(int (*body)(int)) {
    pid_ = ::fork();
    if (pid_ == 0) ::_exit(goes_down(20, body));
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int pid() const { return pid_; }

  /// Its stack once it is in `function`, which takes a moment.
  Stack stack_in(const std::string& function) const {
    Stack stack;
    for (int i = 0; i < 1000; ++i) {
      stack = stack_of(pid_, kLimit);
      if (std::find(stack.functions.begin(), stack.functions.end(), function) !=
          stack.functions.end()) {
        return stack;
      }
    }
    return stack;
  }

  /// Its state. If that is `old`, waits a moment for a change: the kernel stops or resumes it when
  /// it is next on a core.
  std::string state_but(const std::string& old) const {
    std::string state = process_state(pid_);
    for (int i = 0; i < 500 && state == old; ++i) {
      std::this_thread::sleep_for(10ms);
      state = process_state(pid_);
    }
    return state;
  }

 private:
  pid_t pid_ = -1;
};

TEST(Stack, TellsWhereAProcessWaits) {
  const Child child(waits_in_a_call);
  // In pause() itself: on its way there it may be in the loader, which looks the function up.
  const Stack stack = child.stack_in("pause");
  const std::string text = to_string(stack);
  EXPECT_NE(
      text.find("pause < lockstep::testing::waits_in_a_call < lockstep::testing::goes_down < "),
      std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("main")) << text;
}

TEST(Stack, TellsWhereAProcessLoopsOrIsStopped) {
  const Child child(loops_for_ever);
  const std::string loops = to_string(child.stack_in("lockstep::testing::loops_for_ever"));
  EXPECT_TRUE(loops.starts_with("lockstep::testing::loops_for_ever < ")) << loops;
  ::kill(child.pid(), SIGSTOP);
  ::waitpid(child.pid(), nullptr, WUNTRACED);
  EXPECT_EQ(to_string(stack_of(child.pid(), kLimit)), loops);
  EXPECT_EQ(child.state_but("running"), "stopped") << "and stays so";
  ::kill(child.pid(), SIGCONT);
  EXPECT_EQ(to_string(stack_of(child.pid(), kLimit)), loops);
  EXPECT_EQ(child.state_but("stopped"), "running") << "and goes on";
}

#if defined(__x86_64__)
TEST(Stack, TellsWhoCalledCodeThatTheProgramMade) {
  for (const auto body : {calls_a_generated_loop, calls_a_kernel, calls_a_framed_loop}) {
    const Child child(body);
    const std::string text = to_string(child.stack_in("[generated code]"));
    EXPECT_TRUE(text.starts_with("[generated code] < lockstep::testing::calls_generated")) << text;
    EXPECT_NE(text.find("< lockstep::testing::goes_down < "), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("main")) << text;
    const bool is_framed = body == calls_a_framed_loop;
    EXPECT_EQ(text.find("calls_generated (guessed) < ") == std::string::npos, is_framed) << text;
  }
}
#endif

// Even in the middle of a look: a job whose ranks look at each other is often just being killed.
TEST(Stack, WhoLooksMayDieAndTheProcessGoesOn) {
  const Child child(loops_for_ever);
  child.stack_in("lockstep::testing::loops_for_ever");
  for (int i = 0; i < 40; ++i) {
    const pid_t looks = ::fork();
    if (looks == 0) {
      std::string why_not;
      while (true) {
        auto image = ProcessImage::of(child.pid(), &why_not);
        if (image) image->frames(&why_not);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + i));  // at any point of the look
    ::kill(looks, SIGKILL);
    ::waitpid(looks, nullptr, 0);
    ASSERT_EQ(child.state_but("stopped"), "running") << i;
  }
}

TEST(Stack, WhoDiesWhileLookedAtIsLeftToItsParent) {
  std::string why_not;
  for (int i = 0; i < 100; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) loops_for_ever(0);
    std::thread kills([pid, i] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 40));
      ::kill(pid, SIGKILL);
    });
    if (auto image = ProcessImage::of(pid, &why_not)) image->frames(&why_not);
    kills.join();
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid) << i;
  }
}

TEST(Stack, AnotherThreadTellsWhereItsOwnProcessIs) {
  Stack stack;
  std::thread looks([&stack] {
    const auto is_there = [&stack] {
      const auto& names = stack.functions;
      return std::find(names.begin(), names.end(), "lockstep::testing::waits_until_found_out") !=
             names.end();
    };
    for (int i = 0; i < 100 && !is_there(); ++i) stack = own_stack(kLimit);
    found_out = true;
  });
  goes_down(20, waits_until_found_out);
  looks.join();
  const std::string text = to_string(stack);
  EXPECT_NE(text.find("waits_until_found_out < lockstep::testing::goes_down"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("write_down"), std::string::npos) << "the handler is no part of it: " << text;
  EXPECT_TRUE(text.ends_with("main")) << text;
}

// The unanswered signal is still pending then. It must neither spoil the next look nor end the
// process when it arrives.
TEST(Stack, OfAMainThreadThatTakesNoSignalIsHadWhenItDoes) {
  sigset_t mask;
  sigset_t before;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGRTMAX - 3);
  ::pthread_sigmask(SIG_BLOCK, &mask, &before);
  const auto look = [](std::chrono::milliseconds limit) {
    Stack stack;
    std::thread([&stack, limit] { stack = own_stack(limit); }).join();
    return to_string(stack);
  };
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(look(20ms), "not to be had (the main thread takes no signal)");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_TRUE(look(kLimit).ends_with("main"));
  struct sigaction after {};
  ::sigaction(SIGRTMAX - 3, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
}

TEST(Stack, LeavesAProgramsOwnHandlerAlone) {
  const auto before = ::signal(SIGRTMAX - 3, [](int) { std::abort(); });
  EXPECT_TRUE(own_stack(kLimit).functions.empty());
  ::signal(SIGRTMAX - 3, before);
}

TEST(Stack, SaysWhyThereIsNone) {
  EXPECT_EQ(to_string(stack_of(::getpid(), kLimit)),
            "not to be had (a process cannot read its own)");
  EXPECT_EQ(to_string(stack_of(999'999'999, kLimit)), "not to be had (No such file or directory)");
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(dead), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(to_string(stack_of(dead, kLimit)).starts_with("not to be had ("));
  ::waitpid(dead, nullptr, 0);
}

TEST(Stack, OfALongOneTheEndsAreTold) {
  Stack stack;
  for (int i = 0; i < 20; ++i) stack.functions.push_back("f" + std::to_string(i));
  EXPECT_EQ(to_string(stack), "f0 < f1 < f2 < f3 < f4 < ... < f15 < f16 < f17 < f18 < f19");
  stack.functions = {"pause", "main", "__libc_start_call_main", "_start"};
  EXPECT_EQ(to_string(stack), "pause < main");
  stack.functions = {"pause", "run", "[libc.so.6]", "__libc_start_main", "_start"};
  EXPECT_EQ(to_string(stack), "pause < run");
}

TEST(FunctionName, IsTheNameWithoutArguments) {
  EXPECT_EQ(function_name("_ZN8lockstep8internal7Reducer11finish_passEv"),
            "lockstep::internal::Reducer::finish_pass");
  EXPECT_EQ(function_name("_ZZN8lockstep5bench12_GLOBAL__N_19run_stepsERKNS_5WorldEENKUlvE_clEv"),
            "lockstep::bench::run_steps::{lambda#1}::operator()");
  EXPECT_EQ(function_name("_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_"), "std::move");
  EXPECT_EQ(function_name("_ZNKSt8functionIFvvEEclEv"), "std::function::operator()");
  EXPECT_EQ(function_name("_ZN12_GLOBAL__N_13fooIiEEvT_"), "foo");
  EXPECT_EQ(function_name("_ZlsRSoi"), "operator<<");
  EXPECT_EQ(function_name("_Znwm"), "operator new");
  EXPECT_EQ(function_name("pthread_cond_wait@@GLIBC_2.3.2"), "pthread_cond_wait");
  EXPECT_EQ(function_name("main"), "main");
  EXPECT_EQ(function_name(""), "");
}

}  // namespace
}  // namespace testing
}  // namespace lockstep
