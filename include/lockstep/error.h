#pragma once
// The one exception type of the library, and what each kind means to a caller.

#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep {

enum class ErrorCode {
  kInvalidArgument,  ///< The caller or the user asked for something impossible. Nothing was done.
  kCorrupt,          ///< Input from outside (file, wire) is not what it claims to be.
  kNotFound,         ///< A file, key or program that must exist does not.
  kUnavailable,      ///< A service cannot be reached, or a resource (port, memory, disk) is taken.
  kMismatch,         ///< Ranks disagree: other collective, other shape, other build.
  kTimeout,          ///< A deadline passed. The text names who is late.
  kPeerLost,         ///< Another rank died or closed its connection.
  kIo,               ///< The operating system failed a call; the text has errno's meaning.
  kDiverged,         ///< Training left the range of finite numbers.
  kInternal,         ///< A defect of this library.
};

/// "kTimeout" and so on.
std::string_view to_string(ErrorCode code);

/// What went wrong, where, and what to try: one line that a user can act on.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// kIo with errno's meaning appended: "open data.bin: No such file or directory".
/// Reads errno, so call it before anything else does.
[[nodiscard]] Error io_error(const std::string& doing);

/// Exit status of a program that ends with this error: 2 where the user's input was at fault
/// (kInvalidArgument, kCorrupt, kNotFound), else 1.
int exit_status(const Error& error) noexcept;

/// Runs `body` and turns what it throws into one line "PROGRAM: error: TEXT" on standard error
/// and an exit status (1 for exceptions that are not ours). For use as the body of main().
int run_main(std::string_view program, int (*body)(int, char**), int argc, char** argv) noexcept;

}  // namespace lockstep
