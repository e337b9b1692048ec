#include "lockstep/comm/flight/process_image.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "lockstep/comm/flight/generated_code.h"

namespace lockstep::inline internal {
namespace {

struct Walk {
  const Libdw& dw;
  std::vector<uint64_t> places;
};

int add_frame(Dwfl_Frame* frame, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  Dwarf_Addr place = 0;
  bool is_activation = false;
  if (!walk.dw.frame_pc(frame, &place, &is_activation)) return DWARF_CB_ABORT;
  // A return address may lie behind the end of the calling function.
  walk.places.push_back(is_activation ? place : place - 1);
  return walk.places.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/// Files with debugging information are not searched for: they may be on another machine.
int no_debuginfo(Dwfl_Module* /*module*/, void** /*user*/, const char* /*name*/,
                 Dwarf_Addr /*base*/, const char* /*file*/, const char* /*link*/, GElf_Word /*crc*/,
                 char** /*found*/) {
  return -1;
}

/// Keeps the main thread of another process stopped while this lives; for one thread. Uses
/// PTRACE_SEIZE instead of PTRACE_ATTACH, which stops with a signal. If this process ended
/// meanwhile, the signal would stay with the other process, and it would remain stopped.
class Held {
 public:
  explicit Held(pid_t pid) : pid_(pid) {
    if (::ptrace(PTRACE_SEIZE, pid_, 0, 0) != 0) return;
    is_ours_ = true;
    siginfo_t info{};
    if (::ptrace(PTRACE_INTERRUPT, pid_, 0, 0) != 0) return;
    // WNOWAIT: the exit status of a process that dies meanwhile is for its parent, which may be
    // this process.
    const int all = WSTOPPED | WEXITED | WNOWAIT | __WALL;
    const bool seen = ::waitid(P_PID, static_cast<id_t>(pid_), &info, all) == 0;
    stands_still_ = seen && (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED);
    if (!stands_still_) errno = ESRCH;  // it has just ended
    // If a signal came first, the thread stopped before its handler, and must receive it
    // afterwards.
    if (stands_still_ && info.si_status >> 8 != PTRACE_EVENT_STOP) signal_ = info.si_status;
  }
  ~Held() {
    if (is_ours_) ::ptrace(PTRACE_DETACH, pid_, 0, signal_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  bool stands_still() const { return stands_still_; }

 private:
  const pid_t pid_;
  bool is_ours_ = false;
  bool stands_still_ = false;
  long signal_ = 0;
};

/// Removes text in brackets: arguments of functions and of templates.
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

}  // namespace

ProcessImage::ProcessImage(const Libdw& dw, Dwfl* process, int pid)
    : dw_(&dw), process_(process), pid_(pid) {}

ProcessImage::ProcessImage(ProcessImage&& other) noexcept
    : dw_(other.dw_),
      process_(std::exchange(other.process_, nullptr)),
      pid_(other.pid_),
      guessed_(other.guessed_) {}

ProcessImage::~ProcessImage() {
  if (process_ != nullptr) dw_->end(process_);
}

std::string ProcessImage::last_error() const {
  const char* const text = dw_->errmsg(-1);
  return text != nullptr ? text : "it cannot be read";
}

std::optional<ProcessImage> ProcessImage::of(int pid, std::string* why_not) {
  const Libdw* const dw = Libdw::load(why_not);
  if (dw == nullptr) return std::nullopt;
  static const Dwfl_Callbacks callbacks = {dw->linux_proc_find_elf, no_debuginfo, nullptr, nullptr};
  ProcessImage image(*dw, dw->begin(&callbacks), pid);
  const int failure = image.process_ ? dw->linux_proc_report(image.process_, pid) : -1;
  if (failure == 0 && dw->report_end(image.process_, nullptr, nullptr) == 0) return image;
  *why_not = failure > 0 ? std::generic_category().message(failure) : image.last_error();
  return std::nullopt;
}

std::vector<uint64_t> ProcessImage::frames(std::string* why_not) {
  Walk walk{*dw_, {}};
  const Held held(pid_);
  if (!held.stands_still()) {
    *why_not = std::generic_category().message(errno);
    return {};
  }
  // The walk may fail at missing tables; its frames so far count.
  if (dw_->linux_proc_attach(process_, pid_, true) != 0 ||
      (dw_->getthread_frames(process_, pid_, add_frame, &walk) < 0 && walk.places.empty())) {
    *why_not = last_error();
  } else if (walk.places.empty()) {
    *why_not = "it has no frames";
  }
  if (!walk.places.empty()) add_callers(&walk.places);
  return walk.places;
}

/// If the innermost place is in generated code, libdw fails there, and may have followed a wrong
/// frame pointer.
void ProcessImage::add_callers(std::vector<uint64_t>* places) {
  const uint64_t place = places->front();
  if (!is_generated_code(pid_, place)) return;
  places->resize(1);
  std::string why_not;
  const auto fresh = of(pid_, &why_not);  // this image has libdw's own view of the registers
  if (!fresh) return;
  const auto found = find_caller(*dw_, fresh->process_, pid_);
  if (found.is_guess) guessed_ = found.places.front();
  places->insert(places->end(), found.places.begin(), found.places.end());
}

std::string ProcessImage::function_at(uint64_t place) {
  // This check is first: libdw rounds the ends of modules, and takes a page close to one for a part
  // of it.
  if (is_generated_code(pid_, place)) return "[generated code]";
  Dwfl_Module* const module = dw_->addrmodule(process_, place);
  if (module == nullptr) return "?";
  if (const char* const symbol = dw_->module_addrname(module, place)) return function_name(symbol);
  const char* const file =
      dw_->module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  return fmt::format("[{}]", file ? std::filesystem::path(file).filename().string() : "?");
}

std::vector<std::string> ProcessImage::functions(const std::vector<uint64_t>& places) {
  std::vector<std::string> names;
  for (const uint64_t place : places) {
    std::string name = function_at(place);
    if (place == guessed_) name += " (guessed)";
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return names;
}

std::string function_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !demangled) return symbol.substr(0, symbol.find('@'));  // without its version
  std::string name = without_arguments(demangled.get());
  // The text "T f<T>(int) const [clone .cold]" has become "T f const [clone .cold]".
  for (const std::string_view tail : {" [clone", " const"}) name = name.substr(0, name.find(tail));
  const size_t space = name.rfind(' ', name.find("operator"));
  return space == std::string::npos ? name : name.substr(space + 1);
}

}  // namespace lockstep::inline internal
