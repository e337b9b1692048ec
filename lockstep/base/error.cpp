#include "lockstep/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "lockstep/base/descriptors.h"
#include "lockstep/base/env.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process_limits.h"
#include "lockstep/base/text.h"

namespace lockstep {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "kInvalidArgument";
    case ErrorCode::kCorrupt:
      return "kCorrupt";
    case ErrorCode::kNotFound:
      return "kNotFound";
    case ErrorCode::kUnavailable:
      return "kUnavailable";
    case ErrorCode::kMismatch:
      return "kMismatch";
    case ErrorCode::kTimeout:
      return "kTimeout";
    case ErrorCode::kPeerLost:
      return "kPeerLost";
    case ErrorCode::kIo:
      return "kIo";
    case ErrorCode::kDiverged:
      return "kDiverged";
    case ErrorCode::kInternal:
      return "kInternal";
  }
  return "unknown";
}

Error io_error(const std::string& doing) {
  const int number = errno;
  char buffer[256];
  const std::string text = doing + ": " + strerror_r(number, buffer, sizeof buffer);
  const std::string shortage = descriptor_shortage(number);
  return Error(ErrorCode::kIo,
               shortage.empty() ? text : text + " (out of file descriptors: " + shortage + ")");
}

int exit_status(const Error& error) noexcept {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kCorrupt:
    case ErrorCode::kNotFound:
      return 2;
    default:
      return 1;
  }
}

int run_main(std::string_view program, int (*body)(int, char**), int argc, char** argv) noexcept {
  const auto say = [&](const char* what) {
    auto text = without_frames(what);
    // Errors of a command line begin with the verb, which is this program.
    const std::string named = std::string(program) + ": ";
    if (text.starts_with(named)) text = text.substr(named.size());
    std::fprintf(stderr, "%.*s: error: %.*s\n", static_cast<int>(program.size()), program.data(),
                 static_cast<int>(text.size()), text.data());
  };
  try {
    check_log_level(env_or("LOCKSTEP_LOG_LEVEL", "info"));
    const int status = body(argc, argv);
    // The output is the result of the program. A reader that closes the pipe has read enough of it.
    errno = 0;
    const bool lost = (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && errno != EPIPE;
    if (!lost || status != 0) return status;
    const std::string why = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
    say(("standard output cannot be written" + why).c_str());
    return 1;
  } catch (const Error& error) {
    say(error.what());
    return exit_status(error);
  } catch (const std::system_error& error) {
    const std::string shortage =
        error.code() == std::errc::resource_unavailable_try_again ? process_shortage(EAGAIN) : "";
    say((shortage.empty() ? error.what() : error.what() + (" (" + shortage + ")")).c_str());
    return 1;
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  } catch (...) {
    say("an exception that is no std::exception");
    return 1;
  }
}

}  // namespace lockstep
