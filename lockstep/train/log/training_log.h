#pragma once
// The log of a run: log_{rank}.txt of every rank, and standard output on rank 0.

#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "lockstep/base/unique_fd.h"
#include "lockstep/observe/progress.h"

namespace lockstep::inline internal {

/// The logger name of the trainer's records.
inline constexpr std::string_view kTrainLogger = "lockstep.train";
/// The logger name of records about samples.
inline constexpr std::string_view kDataLogger = "lockstep.data";

enum class Severity : int { kDebug = 10, kInfo = 20, kWarning = 30, kError = 40 };

/// Parses "logging.INFO" and so on, as the configuration has them. "logging.CRITICAL" is kError,
/// the highest here; anything else is kInfo.
Severity parse_severity(std::string_view name);

/// "[2026-01-31 12:00:00] lockstep.train INFO - message\n".
std::string log_record(std::string_view time, std::string_view name, Severity severity,
                       std::string_view message);

/// Writes whole records, each with one write(2). A write error costs one warning for each output,
/// and never ends the run. Single-threaded.
class TrainingLog {
 public:
  struct Options {
    std::filesystem::path file;  ///< Appended to. Empty: none.
    bool console = true;         ///< Rank 0 only.
    Severity level = Severity::kInfo;
    /// The output on the terminal is the program's result, so it must be written. Errors of every
    /// call below: kIo.
    bool needs_console = false;
  };
  explicit TrainingLog(const Options& options);

  /// Writes a record; `name` is the part of the program ("lockstep.train").
  void write(Severity severity, std::string_view name, std::string_view message);
  void info(std::string_view name, std::string_view message) {
    write(Severity::kInfo, name, message);
  }
  /// Writes a line without time and name (MindSpore's style, the closing lines).
  void plain(std::string_view line);

  /// The same, on every rank's standard output.
  void every_rank(std::string_view line);

  /// Writes the error that ends the run, into the file alone; the handler of the exception prints
  /// it on the terminal. Errors of the write are ignored.
  void failed(std::string_view name, std::string_view message) noexcept;

  /// The line at the foot of the terminal, redrawn after each record.
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

/// Calls body; logs its exception into the file and throws it again.
template <typename Body>
void log_failure(TrainingLog& log, std::string_view name, const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    log.failed(name, error.what());
    throw;
  }
}

}  // namespace lockstep::inline internal
