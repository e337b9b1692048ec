#include "lockstep/comm/flight/generated_code.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

bool is_generated_code(int pid, uint64_t place) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uint64_t begin = 0;
    uint64_t end = 0;
    char dash = 0;
    std::string rights;
    std::string offset;
    std::string device;
    uint64_t inode = 0;
    words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> std::dec >> inode;
    if (place < begin || place >= end) continue;
    std::string name;  // as "[vdso]"
    return rights.find('x') != std::string::npos && inode == 0 && !(words >> name);
  }
  return false;
}

#if defined(__x86_64__)
namespace {

constexpr size_t kWord = 8;
constexpr size_t kSearched = 65536;
using Registers = std::array<Dwarf_Word, 17>;

/// True if the bytes end with a call, direct or through a register or memory.
bool ends_with_call(const std::array<uint8_t, 7>& code) {
  if (code[2] == 0xE8) return true;
  for (size_t at = 0; at + 2 <= code.size(); ++at) {
    const int operand = code[at + 1];
    if (code[at] != 0xFF || (operand >> 3 & 7) != 2) continue;
    const int mode = operand >> 6;
    const bool has_index = mode != 3 && (operand & 7) == 4;
    size_t length = has_index ? 3 : 2;
    if (mode == 1) length += 1;
    if (mode == 2 || (mode == 0 && (operand & 7) == 5)) length += 4;
    if (mode == 0 && has_index && at + 2 < code.size() && (code[at + 2] & 7) == 5) length += 4;
    if (at + length == code.size()) return true;
  }
  return false;
}

/// The stopped process, and the frame with which a walk begins.
class Search {
 public:
  Search(const Libdw& dw, Dwfl* process, int pid)
      : dw_(dw),
        process_(process),
        pid_(pid),
        memory_(::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

  CallerSearch run() {
    user_regs_struct now{};
    if (!memory_ || ::ptrace(PTRACE_GETREGS, pid_, 0, &now) != 0) return {};
    if (!dw_.attach_state(process_, nullptr, pid_, &callbacks(), this)) return {};
    stack_.resize(kSearched / kWord);
    const ssize_t got = ::pread(memory_.get(), stack_.data(), kSearched, offset(now.rsp));
    stack_.resize(got > 0 ? static_cast<size_t>(got) / kWord : 0);
    const auto framed = by_frame_pointer(now);
    for (size_t i = 0; i < stack_.size(); ++i) {
      if (!is_return_address(stack_[i])) continue;
      const auto found = from_slot(now, i);
      const bool confirmed =
          !framed.empty() && std::find(found.begin(), found.end(), framed.front()) != found.end();
      if (framed.empty() || confirmed) return {found, found.front() != at_front(framed)};
      break;
    }
    return {framed, false};
  }

 private:
  static off_t offset(uint64_t address) { return static_cast<off_t>(address); }
  static uint64_t at_front(const std::vector<uint64_t>& places) {
    return places.empty() ? 0 : places.front();
  }

  std::optional<uint64_t> word(uint64_t address) const {
    uint64_t value = 0;
    if (::pread(memory_.get(), &value, kWord, offset(address)) != kWord) return std::nullopt;
    return value;
  }

  bool is_return_address(uint64_t place) const {
    Dwfl_Module* const module = dw_.addrmodule(process_, place - 1);
    if (module == nullptr) return false;
    Dwarf_Addr bias = 0;
    Dwarf_CFI* const tables = dw_.module_eh_cfi(module, &bias);
    Dwarf_Frame* frame = nullptr;
    if (tables == nullptr || dw_.cfi_addrframe(tables, place - 1 - bias, &frame) != 0) return false;
    std::free(frame);
    std::array<uint8_t, 7> code{};
    const off_t begin = offset(place - code.size());
    return ::pread(memory_.get(), code.data(), code.size(), begin) == std::ssize(code) &&
           ends_with_call(code);
  }

  std::vector<uint64_t> by_frame_pointer(const user_regs_struct& now) {
    const auto bytes = stack_.size() * kWord;
    if (now.rbp < now.rsp || now.rbp - now.rsp >= bytes || now.rbp % kWord != 0) return {};
    const auto before = word(now.rbp);
    const auto place = word(now.rbp + kWord);
    if (!before || !place || !is_return_address(*place)) return {};
    return walk(now, *place, now.rbp + 2 * kWord, *before);
  }

  /// The caller's rbp is unknown: the register may still hold it, or it may be among the words that
  /// the called function saved first. The value that leads farthest is right.
  std::vector<uint64_t> from_slot(const user_regs_struct& now, size_t slot) {
    std::vector<uint64_t> rbps = {now.rbp};
    for (size_t below = 1; below <= 2 && below <= slot; ++below) {
      rbps.push_back(stack_[slot - below]);
    }
    std::vector<uint64_t> best;
    for (const uint64_t rbp : rbps) {
      auto places = walk(now, stack_[slot], now.rsp + (slot + 1) * kWord, rbp);
      if (places.size() > best.size()) best = std::move(places);
    }
    return best;
  }

  /// Walks from the return address `place`. The frame's own place counts, whatever the walk
  /// returns.
  std::vector<uint64_t> walk(const user_regs_struct& now, uint64_t place, uint64_t rsp,
                             uint64_t rbp) {
    first_ = {now.rax, now.rdx, now.rcx, now.rbx, now.rsi, now.rdi, rbp,     rsp,      now.r8,
              now.r9,  now.r10, now.r11, now.r12, now.r13, now.r14, now.r15, place - 1};
    places_.clear();
    dw_.getthread_frames(process_, pid_, add_frame, this);
    if (places_.empty()) places_.push_back(place - 1);
    return places_;
  }

  static int add_frame(Dwfl_Frame* frame, void* argument) {
    auto& search = *static_cast<Search*>(argument);
    Dwarf_Addr place = 0;
    bool is_activation = false;
    if (!search.dw_.frame_pc(frame, &place, &is_activation)) return DWARF_CB_ABORT;
    if (!is_activation) --place;
    if (search.dw_.addrmodule(search.process_, place) == nullptr) return DWARF_CB_ABORT;
    search.places_.push_back(place);
    return search.places_.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
  }

  static const Dwfl_Thread_Callbacks& callbacks() {
    static const Dwfl_Thread_Callbacks all = {next_thread,   get_thread, read_memory,
                                              set_registers, nullptr,    nullptr};
    return all;
  }
  static pid_t next_thread(Dwfl* /*process*/, void* argument, void** thread) {
    const bool first = *thread == nullptr;
    *thread = argument;
    return first ? static_cast<Search*>(argument)->pid_ : 0;
  }
  static bool get_thread(Dwfl* /*process*/, pid_t thread, void* argument, void** of_thread) {
    *of_thread = argument;
    return thread == static_cast<Search*>(argument)->pid_;
  }
  static bool read_memory(Dwfl* /*process*/, Dwarf_Addr address, Dwarf_Word* result,
                          void* argument) {
    const auto value = static_cast<Search*>(argument)->word(address);
    *result = value.value_or(0);
    return value.has_value();
  }
  static bool set_registers(Dwfl_Thread* thread, void* argument) {
    const auto& search = *static_cast<Search*>(argument);
    search.dw_.thread_state_register_pc(thread, search.first_.back());
    return search.dw_.thread_state_registers(thread, 0, static_cast<unsigned>(search.first_.size()),
                                             search.first_.data());
  }

  const Libdw& dw_;
  Dwfl* process_;
  const int pid_;
  const UniqueFd memory_;
  std::vector<uint64_t> stack_;  ///< From the stack pointer up.
  Registers first_{};            ///< The registers with which a walk begins.
  std::vector<uint64_t> places_;
};

}  // namespace

CallerSearch find_caller(const Libdw& dw, Dwfl* process, int pid) {
  return Search(dw, process, pid).run();
}
#else
CallerSearch find_caller(const Libdw& /*dw*/, Dwfl* /*process*/, int /*pid*/) {
  return {};
}
#endif

}  // namespace lockstep::inline internal
