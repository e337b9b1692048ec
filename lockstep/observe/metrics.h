#pragma once
// metrics.jsonl: what a run measured, one JSON object a line, for programs to read.
//   {"kind":"train","epoch":1,"step":20,"loss":2.3025850929940455,"lr":0.1}

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep {

struct MetricsRecord {
  std::string kind;   ///< "train", "eval", ...
  int64_t epoch = 0;  ///< From 1.
  int64_t step = 0;   ///< Optimizer steps done.
  /// In the order of the line. Names other than the three above, each once.
  std::vector<std::pair<std::string, double>> values;

  /// Nothing when there is no such value.
  std::optional<double> value(const std::string& name) const;
};

/// Without end of line. Finite doubles round-trip; others are null, as JSON has none.
std::string encode_metrics(const MetricsRecord& record);
/// Errors: kCorrupt saying what is wrong with the line.
MetricsRecord decode_metrics(const std::string& line);

/// A whole file; null reads as NaN. A last line without end (the writer was killed) is left out.
/// Errors: kNotFound, kCorrupt naming file and line.
std::vector<MetricsRecord> read_metrics(const std::filesystem::path& path);

/// Appends records, each with one write(2), so a reader sees whole lines and a crash loses none
/// that was written. One thread.
class MetricsWriter {
 public:
  /// Keeps the records of steps up to `resume_step` that an earlier run left in `path` and drops
  /// the others, so that no step appears twice; 0 starts an empty file.
  /// Errors: kIo, kCorrupt (the old file is not one of ours; it is not touched).
  MetricsWriter(const std::filesystem::path& path, int64_t resume_step);

  /// Errors: kIo naming the file (disk full); the file then ends with a whole record.
  void write(const MetricsRecord& record);

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace lockstep
