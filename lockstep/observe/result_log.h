#pragma once
// result.log in MindOCR's format: a header, then one tab-separated row per epoch.
//   Epoch  loss  acc  train_time  eval_time
//   1      2.3026  0.1000  12.3000  1.2000
// Floats have four decimals; a metric that was not measured in that epoch is NA.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/unique_fd.h"

namespace lockstep::inline internal {

struct ResultRow {
  int64_t epoch = 1;
  double loss = 0;                             ///< Mean over the epoch's steps.
  std::vector<std::optional<double>> metrics;  ///< One for each name of the header.
  double train_time = 0;                       ///< Seconds.
  std::optional<double> eval_time;             ///< Seconds.
};

/// One thread. With no metric names there is no evaluation: columns Epoch, loss, train_time.
class ResultLog {
 public:
  /// Starts the file anew. After a resume (`resume_epoch` > 0) it keeps its header and the rows up
  /// to that epoch instead. A file with other columns, or with damaged rows, is moved to PATH.1
  /// with a warning. Errors: kIo.
  ResultLog(const std::filesystem::path& path, std::vector<std::string> metric_names,
            int64_t resume_epoch = 0);

  /// Errors: kInvalidArgument (number of metrics), kIo.
  void write(const ResultRow& row);

  /// Adds metrics and eval_time of a later evaluation to the epoch's row, if it exists; loss and
  /// train_time stay. Errors: those of write().
  void add_evaluation(const ResultRow& row);

 private:
  std::vector<std::string> metric_cells(const ResultRow& row) const;
  void open();

  std::filesystem::path path_;
  std::vector<std::string> metric_names_;
  UniqueFd fd_;
};

}  // namespace lockstep::inline internal
