#pragma once
// The log of a run: log_{rank}.txt of every rank, and standard output on rank 0.

#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "lockstep/base/unique_fd.h"
#include "lockstep/observe/progress.h"

namespace lockstep {

/// The name in the trainer's records.
inline constexpr std::string_view kTrainLogger = "lockstep.train";
/// In those about samples.
inline constexpr std::string_view kDataLogger = "lockstep.data";

enum class Severity : int { kDebug = 10, kInfo = 20, kWarning = 30, kError = 40 };

/// "logging.INFO" and so on, as the configuration has them ("logging.CRITICAL": kError, of which
/// none is above); anything else is kInfo.
Severity parse_severity(std::string_view name);

/// "[2026-01-31 12:00:00] lockstep.train INFO - message\n".
std::string log_record(std::string_view time, std::string_view name, Severity severity,
                       std::string_view message);

/// Writes whole records, each with one write(2). What cannot be written costs a warning for each
/// place, once, and never the run. One thread.
class TrainingLog {
 public:
  struct Options {
    std::filesystem::path file;  ///< Appended to. Empty: none.
    bool console = true;         ///< Rank 0 only.
    Severity level = Severity::kInfo;
    /// What is on standard output is all that the program is for: then it must get there. Errors of
    /// every call below: kIo.
    bool needs_console = false;
  };
  explicit TrainingLog(const Options& options);

  /// A record; `name` is the part of the program ("lockstep.train").
  void write(Severity severity, std::string_view name, std::string_view message);
  void info(std::string_view name, std::string_view message) {
    write(Severity::kInfo, name, message);
  }
  /// A line as it is, without time and name (MindSpore's style, the closing lines).
  void plain(std::string_view line);

  /// The same, on every rank's standard output.
  void every_rank(std::string_view line);

  /// The error that ends the run, into the file alone: who catches it tells the terminal. What
  /// hinders that is passed over.
  void failed(std::string_view name, std::string_view message) noexcept;

  /// The line at the foot of the terminal, drawn again after each record.
  ProgressLine& progress() { return progress_; }

 private:
  void put(const std::string& text, bool console);
  void put_in_file(const std::string& text);
  void put_on_console(const std::string& text);

  Options options_;
  UniqueFd file_;
  bool file_warned_ = false;
  bool console_warned_ = false;
  ProgressLine progress_;
};

/// Calls body; what it throws is in the log's file when it goes on.
template <typename Body>
void log_failure(TrainingLog& log, std::string_view name, const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    log.failed(name, error.what());
    throw;
  }
}

}  // namespace lockstep
