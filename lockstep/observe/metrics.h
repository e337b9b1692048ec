#pragma once
// metrics.jsonl: measurements of a run, one JSON object per line, for programs to read.
//   {"kind":"train","epoch":1,"step":20,"loss":2.3025850929940455,"lr":0.1}

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

struct MetricsRecord {
  std::string kind;   ///< "train", "eval", ...
  int64_t epoch = 0;  ///< From 1.
  int64_t step = 0;   ///< Optimizer steps done.
  /// In the order of the line. Names differ from the three above and from each other.
  std::vector<std::pair<std::string, double>> values;
  std::vector<std::pair<std::string, std::string>> texts{};  ///< Before the values in the line.

  /// Nothing if there is no such value.
  std::optional<double> value(const std::string& name) const;
  std::optional<std::string> text(const std::string& name) const;
};

/// Labels of the records' writer: "run", "host" and, as the last value, "rank".
struct MetricsLabels {
  std::string run;
  std::string host;
  int rank = 0;
};

/// "2026-11-23T14:05:06.123Z", and back (seconds since 1970); nothing for other texts.
std::string utc_time(std::chrono::system_clock::time_point time);
std::optional<double> seconds_of(const std::string& utc_time);

/// Without end of line. Finite doubles round-trip; others are null, as JSON has none.
std::string encode_metrics(const MetricsRecord& record);
/// Null reads as NaN. Errors: kCorrupt with the fault of the line.
MetricsRecord decode_metrics(std::string_view line);

/// Appends records, each with one write(2), so that readers see whole lines and a crash loses no
/// written record. One thread.
class MetricsWriter {
 public:
  /// Keeps the records of steps up to `resume_step` that an earlier run left in `path` and drops
  /// the others, so that no step appears twice. A file with damaged lines, as after a power cut, is
  /// moved to PATH.1 with a warning, and its records are kept. With labels each record gets them,
  /// and "time". Errors: kIo.
  MetricsWriter(const std::filesystem::path& path, int64_t resume_step,
                std::optional<MetricsLabels> labels = std::nullopt);

  /// The dropped records: work that must be repeated.
  struct Lost {
    int64_t steps = 0;
    /// Their duration (without the first one's if no record is kept); 0 if times are not known.
    double seconds = 0;
    double idle_s = 0;  ///< From the last record to now; 0 if times are not known.
  };
  const Lost& lost() const { return lost_; }

  /// Errors: kIo naming the file (disk full); the file then ends with a whole record.
  void write(const MetricsRecord& record);

 private:
  void keep_records(int64_t resume_step, int fd);

  std::filesystem::path path_;
  std::optional<MetricsLabels> labels_;
  Lost lost_;
  UniqueFd fd_;
};

}  // namespace lockstep::inline internal
