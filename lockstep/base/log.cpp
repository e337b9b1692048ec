#include "lockstep/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/log_sink.h"
#include "lockstep/base/mutex.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

// Forty lines instead of a logging library. The launcher must start in a millisecond, and every
// line must be one write(2) so that lines of different processes never mix.

namespace lockstep::inline internal {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warn", "error"};

std::string& log_name() {
  static std::string name;
  return name;
}

struct Sink {
  Mutex mutex;
  LogSink take LOCKSTEP_GUARDED_BY(mutex);
};

Sink& sink() {
  static Sink& one = *new Sink;  // threads may log until the very end
  return one;
}

void write_line(const std::string& line) {
  Sink& to = sink();
  {
    const MutexLock lock(to.mutex);
    if (to.take) return to.take(line);
  }
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // no place to report it
}

LogLevel threshold() {
  static const LogLevel level = [] {
    const std::string wanted = env_or("LOCKSTEP_LOG_LEVEL", "info");
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (wanted == kNames[i]) return static_cast<LogLevel>(i);
    }
    // Not an error: it is only found when there is something else to log.
    write_line("lockstep: warn: LOCKSTEP_LOG_LEVEL is '" + wanted +
               "'; it can be debug, info, warn or error, and info is taken\n");
    return LogLevel::kInfo;
  }();
  return level;
}

}  // namespace

void set_log_name(const std::string& name) {
  log_name() = name;
}

void set_log_sink(LogSink take) {
  Sink& to = sink();
  const MutexLock lock(to.mutex);
  to.take = std::move(take);
}

void check_log_level(const std::string& level) {
  const std::vector<std::string> names(kNames.begin(), kNames.end());
  if (std::find(names.begin(), names.end(), level) != names.end()) return;
  throw Error(ErrorCode::kInvalidArgument, "environment variable LOCKSTEP_LOG_LEVEL: '" + level +
                                               "' is not one of debug, info, warn, error" +
                                               did_you_mean(level, names));
}

void log(LogLevel level, const std::string& message) {
  if (level < threshold()) return;
  std::string line = "lockstep";
  if (!log_name().empty()) line += " " + log_name();
  line += ": ";
  if (level != LogLevel::kInfo) line.append(kNames[static_cast<size_t>(level)]).append(": ");
  write_line(line + message + "\n");
}

}  // namespace lockstep::inline internal
