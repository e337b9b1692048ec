#include "lockstep/train/log/training_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kDebug:
      return "DEBUG";
    case Severity::kInfo:
      return "INFO";
    case Severity::kWarning:
      return "WARNING";
    case Severity::kError:
      return "ERROR";
  }
  return "INFO";
}

void warn_of_loss(const Error& error) {
  log_warn(fmt::format("lines of the log are lost, and the run goes on: {}", error.what()));
}

}  // namespace

Severity parse_severity(std::string_view name) {
  for (const auto severity : {Severity::kDebug, Severity::kWarning, Severity::kError}) {
    if (name == fmt::format("logging.{}", severity_name(severity))) return severity;
  }
  return name == "logging.CRITICAL" ? Severity::kError : Severity::kInfo;
}

std::string log_record(std::string_view time, std::string_view name, Severity severity,
                       std::string_view message) {
  return fmt::format("[{}] {} {} - {}\n", time, name, severity_name(severity), message);
}

TrainingLog::TrainingLog(const Options& options)
    : options_(options), progress_(2, options.console) {
  if (options_.file.empty()) return;
  file_.reset(::open(options_.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) warn_of_loss(io_error(fmt::format("open {}", options_.file.string())));
}

void TrainingLog::write(Severity severity, std::string_view name, std::string_view message) {
  if (severity < options_.level) return;
  put(log_record(local_time(), name, severity, message), options_.console);
}

void TrainingLog::plain(std::string_view line) {
  put(std::string(line) + "\n", options_.console);
}

void TrainingLog::every_rank(std::string_view line) {
  put(std::string(line) + "\n", true);
}

void TrainingLog::failed(std::string_view name, std::string_view message) noexcept {
  if (!file_) return;
  try {
    const auto text = log_record(local_time(), name, Severity::kError, message);
    write_all(file_.get(), text.data(), text.size(), options_.file.string());
  } catch (const std::exception&) {  // the disk itself may be the cause
  }
}

void TrainingLog::put(const std::string& text, bool console) {
  if (file_) put_in_file(text);
  if (console) put_on_console(text);
}

void TrainingLog::put_in_file(const std::string& text) {
  try {
    write_all(file_.get(), text.data(), text.size(), options_.file.string());
  } catch (const Error& error) {  // a full disk may have space again later
    if (!std::exchange(file_warned_, true)) warn_of_loss(error);
  }
}

void TrainingLog::put_on_console(const std::string& text) {
  progress_.clear();
  try {
    write_all(1, text.data(), text.size(), "standard output");
  } catch (const Error& error) {
    if (options_.needs_console) throw;
    if (!std::exchange(console_warned_, true)) warn_of_loss(error);
  }
}

}  // namespace lockstep::inline internal
