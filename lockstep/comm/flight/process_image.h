#pragma once
// The modules of a process, and the positions of its threads in them, by libdw (elfutils). It walks
// stacks by the exception tables that every program has. It is loaded on first use, and no program
// links it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/flight/libdw.h"

namespace lockstep::inline internal {

class ProcessImage {
 public:
  /// Reads the memory map. Nothing if it is not readable; `why_not` then receives the reason.
  static std::optional<ProcessImage> of(int pid, std::string* why_not);
  ProcessImage(ProcessImage&& other) noexcept;
  ~ProcessImage();

  /// Places in the code, innermost first, of the main thread of another process. The thread is
  /// stopped meanwhile (by ptrace, so call this from one thread); a stopped process stays stopped.
  /// Empty if that fails; `why_not` then receives the reason.
  std::vector<uint64_t> frames(std::string* why_not);

  /// The functions at these places. "[libc.so.6]": the library has no symbol; "[generated code]":
  /// the program made it at run time; " (guessed)" follows if frames() was not sure. Equal
  /// neighbours are merged.
  std::vector<std::string> functions(const std::vector<uint64_t>& places);

 private:
  ProcessImage(const Libdw& dw, Dwfl* process, int pid);
  std::string function_at(uint64_t place);
  std::string last_error() const;
  void add_callers(std::vector<uint64_t>* places);

  const Libdw* dw_;
  Dwfl* process_;
  int pid_;
  uint64_t guessed_ = 0;  // place of frames() that is only likely
};

/// The name in a linker's symbol, as "lockstep::internal::Reducer::finish_pass": without arguments
/// of functions and templates, unnamed namespaces and a symbol's version.
std::string function_name(const std::string& symbol);

}  // namespace lockstep::inline internal
