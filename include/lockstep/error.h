#pragma once
// Error is this library's own exception. Its ErrorCode is the kind of the failure.
//
// Use:
//   int train(int argc, char** argv) {
//     using lockstep::Error, lockstep::ErrorCode;
//     if (argc != 2) throw Error(ErrorCode::kInvalidArgument, "usage: train FILE");  // status 2
//     try {
//       lockstep::load_weights(argv[1], *net);
//     } catch (const Error& error) {
//       if (error.code() != ErrorCode::kNotFound) throw;  // without a file it begins anew
//     }
//     return 0;
//   }
//   int main(int argc, char** argv) { return lockstep::run_main("train", train, argc, argv); }
//
// Threads: any; main() alone calls run_main(). Cost: that of an exception and its text.
// Errors: no function here throws Error; io_error() returns it.

#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep {

enum class ErrorCode {
  kInvalidArgument,  ///< The caller or the user requested something impossible. Nothing was done.
  kCorrupt,          ///< Input from outside (file, wire) violates its format.
  kNotFound,         ///< A required file, key or program does not exist.
  kUnavailable,      ///< A service cannot be reached, or a resource (port, memory, disk) is taken.
  kMismatch,         ///< Ranks disagree: other collective, other shape, other build.
  kTimeout,          ///< A deadline passed. The text names the late ranks.
  kPeerLost,         ///< Another rank died or closed its connection.
  kIo,               ///< A call of the operating system failed; the text has errno's meaning.
  kDiverged,         ///< Training left the range of finite numbers.
  kInternal,         ///< A defect of this library.
};

/// For example "kTimeout".
std::string_view to_string(ErrorCode code);

/// The failure, its place and a remedy, in one line for the user.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// kIo with errno's meaning appended: "open data.bin: No such file or directory".
/// Reads errno, so call it first.
[[nodiscard]] Error io_error(const std::string& doing);

/// Exit status of a program that ends with this error: 2 for a fault of the user's input
/// (kInvalidArgument, kCorrupt, kNotFound), else 1.
int exit_status(const Error& error) noexcept;

/// Runs `body` and turns an exception into one line "PROGRAM: error: TEXT" on standard error and an
/// exit status (1 for exceptions of other libraries). For use as the body of main(). The status is
/// also 1 if standard output cannot be written, and 2 for an unknown LOCKSTEP_LOG_LEVEL.
int run_main(std::string_view program, int (*body)(int, char**), int argc, char** argv) noexcept;

}  // namespace lockstep
