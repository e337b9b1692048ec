#include "lockstep/comm/flight/stack.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <thread>

#include "lockstep/comm/flight/libdw.h"
#include "lockstep/comm/flight/process_state.h"

namespace lockstep {
namespace {

constexpr size_t kMostFrames = 256;
/// Of a long stack: where it is, and how it came there.
constexpr size_t kInnermost = 5;
constexpr size_t kOutermost = 5;

struct Walk {
  const Libdw& dw;
  std::vector<Dwarf_Addr> places;
};

int add_frame(Dwfl_Frame* frame, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  Dwarf_Addr place = 0;
  bool is_activation = false;
  if (!walk.dw.frame_pc(frame, &place, &is_activation)) return DWARF_CB_ABORT;
  // A return address may lie behind the end of the function that calls.
  walk.places.push_back(is_activation ? place : place - 1);
  return walk.places.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/// Tables for exceptions are in the program itself; files with debugging information, which may be
/// on another machine, are not looked for.
int no_debuginfo(Dwfl_Module* /*module*/, void** /*user*/, const char* /*name*/,
                 Dwarf_Addr /*base*/, const char* /*file*/, const char* /*link*/, GElf_Word /*crc*/,
                 char** /*found*/) {
  return -1;
}

std::string name_at(const Libdw& dw, Dwfl* process, Dwarf_Addr place) {
  Dwfl_Module* const module = dw.addrmodule(process, place);
  if (module == nullptr) return "?";
  if (const char* const symbol = dw.module_addrname(module, place)) return function_name(symbol);
  const char* const file =
      dw.module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  return fmt::format("[{}]", file ? std::filesystem::path(file).filename().string() : "?");
}

Stack walk(const Libdw& dw, int pid) {
  static const Dwfl_Callbacks callbacks = {dw.linux_proc_find_elf, no_debuginfo, nullptr, nullptr};
  const std::unique_ptr<Dwfl, decltype(dw.end)> process(dw.begin(&callbacks), dw.end);
  const auto failed = [&dw] {
    const char* const why = dw.errmsg(-1);
    return Stack{{}, why ? why : "it cannot be read"};
  };
  if (!process || dw.linux_proc_report(process.get(), pid) != 0 ||
      dw.report_end(process.get(), nullptr, nullptr) != 0 ||
      dw.linux_proc_attach(process.get(), pid, false) != 0) {
    return failed();
  }
  Walk found{dw, {}};
  const int end = dw.getthread_frames(process.get(), pid, add_frame, &found);
  if (found.places.empty()) {
    return end < 0 ? failed() : Stack{{}, "it has no frames"};
  }
  Stack stack;
  for (const Dwarf_Addr place : found.places) {
    std::string name = name_at(dw, process.get(), place);
    if (stack.functions.empty() || stack.functions.back() != name)
      stack.functions.push_back(std::move(name));
  }
  return stack;
}

/// Without what is in brackets: arguments of functions and of templates.
std::string without_arguments(std::string_view text) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  constexpr std::string_view kOperator = "operator";
  std::string rest;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view here = text.substr(i);
    if (here.starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
    } else if (depth == 0 && here.starts_with(kOperator)) {
      const size_t arguments = here.find('(', kOperator.size() + 1);  // operator() has two pairs
      rest += here.substr(0, arguments);
      i += std::min(arguments, here.size()) - 1;
    } else if (text[i] == '(' || text[i] == '<') {
      ++depth;
    } else if (text[i] == ')' || text[i] == '>') {
      --depth;
    } else if (depth == 0) {
      rest += text[i];
    }
  }
  return rest;
}

/// Without what comes before main, which itself may not be there: it may end with a jump.
std::vector<std::string> without_start(std::vector<std::string> functions) {
  const auto main = std::find(functions.begin(), functions.end(), "main");
  if (main != functions.end()) functions.erase(main + 1, functions.end());
  const std::set<std::string_view> start = {"_start", "__libc_start_main", "[libc.so.6]"};
  while (functions.size() > 1 && start.count(functions.back()) != 0) functions.pop_back();
  return functions;
}

}  // namespace

std::string function_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !demangled) return symbol.substr(0, symbol.find('@'));  // without its version
  std::string name = without_arguments(demangled.get());
  // What is left of "T f<T>(int) const [clone .cold]" is "T f const [clone .cold]".
  for (const std::string_view tail : {" [clone", " const"}) name = name.substr(0, name.find(tail));
  const size_t space = name.rfind(' ', name.find("operator"));
  return space == std::string::npos ? name : name.substr(space + 1);
}

Stack stack_of(int pid, std::chrono::milliseconds limit) {
  std::string why_not;
  const Libdw* const dw = Libdw::load(&why_not);
  if (dw == nullptr) return {{}, why_not};
  if (pid == ::getpid()) return {{}, "a process cannot read its own"};
  // A process that waits for a disk does not stop until it has it; and ptrace is for one thread.
  auto task = std::make_shared<std::packaged_task<Stack()>>([dw, pid] { return walk(*dw, pid); });
  auto stack = task->get_future();
  std::thread([task] { (*task)(); }).detach();
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

}  // namespace lockstep
