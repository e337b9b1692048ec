#include "lockstep/base/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

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
  return Error(ErrorCode::kIo, doing + ": " + strerror_r(number, buffer, sizeof buffer));
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

namespace {

/// Of libtorch's errors the message: what follows are its stack frames.
std::string_view without_frames(std::string_view what) {
  return what.substr(0, what.find("\nException raised from "));
}

}  // namespace

int run_main(std::string_view program, int (*body)(int, char**), int argc, char** argv) noexcept {
  const auto say = [&](const char* what) {
    const auto text = without_frames(what);
    std::fprintf(stderr, "%.*s: error: %.*s\n", static_cast<int>(program.size()), program.data(),
                 static_cast<int>(text.size()), text.data());
  };
  try {
    return body(argc, argv);
  } catch (const Error& error) {
    say(error.what());
    return exit_status(error);
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
}

}  // namespace lockstep
