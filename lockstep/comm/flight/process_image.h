#pragma once
// What lies where in a process, and where its threads are in it, by libdw (elfutils): it walks
// stacks by the tables that every program has for exceptions. It is loaded when first needed, and
// no program links it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/flight/libdw.h"

namespace lockstep {

class ProcessImage {
 public:
  /// Reads what is mapped. Nothing, and why, where it cannot be read.
  static std::optional<ProcessImage> of(int pid, std::string* why_not);
  ProcessImage(ProcessImage&& other) noexcept;
  ~ProcessImage();

  /// Places in the code, innermost first, of the main thread of another process, which stands still
  /// meanwhile (ptrace, so from one thread); one that was stopped stays so. Empty, and why, where
  /// that cannot be.
  std::vector<uint64_t> frames(std::string* why_not);

  /// The functions there; "[libc.so.6]" where a library does not tell, "[generated code]" where
  /// the program made it as it ran; with " (guessed)" where frames() was not sure. Of several one
  /// after the other that are the same, one.
  std::vector<std::string> functions(const std::vector<uint64_t>& places);

 private:
  ProcessImage(const Libdw& dw, Dwfl* process, int pid);
  std::string function_at(uint64_t place);
  std::string last_error() const;
  void add_callers(std::vector<uint64_t>* places);

  const Libdw* dw_;
  Dwfl* process_;
  int pid_;
  uint64_t guessed_ = 0;  // place of frames() that is no more than likely
};

/// Of a linker's symbol: "lockstep::Reducer::finish_pass", without arguments of function and
/// templates, unnamed namespaces and a symbol's version.
std::string function_name(const std::string& symbol);

}  // namespace lockstep
