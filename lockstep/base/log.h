#pragma once
// Messages for people, on standard error, one whole line per write. Level: LOCKSTEP_LOG_LEVEL
// (debug, info, warn, error; default info).

#include <string>

namespace lockstep::inline internal {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

/// Prefix of this process's lines, e.g. "agent" or "rank 3"; empty for none. Call before threads
/// start.
void set_log_name(const std::string& name);

/// Throws if LOCKSTEP_LOG_LEVEL is not a level: programs call this at their start. A log() before
/// that uses info. `level`: its value. Errors: kInvalidArgument.
void check_log_level(const std::string& level);

void log(LogLevel level, const std::string& message);
inline void log_debug(const std::string& message) {
  log(LogLevel::kDebug, message);
}
inline void log_info(const std::string& message) {
  log(LogLevel::kInfo, message);
}
inline void log_warn(const std::string& message) {
  log(LogLevel::kWarn, message);
}
inline void log_error(const std::string& message) {
  log(LogLevel::kError, message);
}

}  // namespace lockstep::inline internal
