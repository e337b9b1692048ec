#include "lockstep/observe/result_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/observe/log_file.h"

namespace lockstep::inline internal {
namespace {

std::string header(const std::vector<std::string>& metric_names) {
  if (metric_names.empty()) return "Epoch\tloss\ttrain_time";
  return fmt::format("Epoch\tloss\t{}\ttrain_time\teval_time", fmt::join(metric_names, "\t"));
}

std::string cell(const std::optional<double>& value) {
  if (!value) return "NA";
  return std::isnan(*value) ? "nan" : fmt::format("{:.4f}", *value);
}

/// The lines of an older file that a run resumed after `resume_epoch` keeps.
std::string kept_lines(const std::filesystem::path& path, const std::string& wanted_header,
                       int64_t resume_epoch) {
  std::string kept = wanted_header + "\n";
  const std::vector<std::string> lines = split(read_file(path), '\n');
  if (lines.empty() || lines.front() != wanted_header) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: has other columns than this run writes ({})", path.string(),
                            fmt::join(split(wanted_header, '\t'), ", ")));
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::string where = fmt::format("{}:{}: epoch", path.string(), i + 1);
    const int64_t epoch = parse_int(split(lines[i], '\t').front(), 0, int64_t{1} << 62, where);
    if (epoch <= resume_epoch) kept += lines[i] + "\n";
  }
  return kept;
}

/// The first lines of the file.
std::string first_lines(const std::filesystem::path& path, const std::string& wanted_header,
                        int64_t resume_epoch) {
  if (resume_epoch > 0 && std::filesystem::exists(path)) {
    try {
      return kept_lines(path, wanted_header, resume_epoch);
    } catch (const Error& error) {
      set_aside(path, error.what());
    }
  }
  return wanted_header + "\n";
}

}  // namespace

ResultLog::ResultLog(const std::filesystem::path& path, std::vector<std::string> metric_names,
                     int64_t resume_epoch)
    : path_(path), metric_names_(std::move(metric_names)) {
  write_file_atomically(path, first_lines(path, header(metric_names_), resume_epoch));
  open();
}

void ResultLog::open() {
  fd_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_) throw io_error("open " + path_.string());
}

std::vector<std::string> ResultLog::metric_cells(const ResultRow& row) const {
  if (row.metrics.size() != metric_names_.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {} metrics for {} columns", path_.string(), row.metrics.size(),
                            metric_names_.size()));
  }
  std::vector<std::string> cells;
  for (const auto& metric : row.metrics) cells.push_back(cell(metric));
  return cells;
}

void ResultLog::write(const ResultRow& row) {
  std::string line = fmt::format("{}\t{}", row.epoch, cell(row.loss));
  for (const auto& metric : metric_cells(row)) line += "\t" + metric;
  line += fmt::format("\t{}", cell(row.train_time));
  if (!metric_names_.empty()) line += fmt::format("\t{}", cell(row.eval_time));
  append_line(fd_.get(), line, path_.string());
}

void ResultLog::add_evaluation(const ResultRow& row) {
  const std::vector<std::string> metrics = metric_cells(row);
  const size_t columns = metrics.size() + 4;  // with Epoch, loss, train_time and eval_time
  auto lines = split(read_file(path_), '\n');
  for (auto& line : lines) {
    auto cells = split(line, '\t');
    if (cells.front() != std::to_string(row.epoch) || cells.size() != columns) continue;
    std::copy(metrics.begin(), metrics.end(), cells.begin() + 2);
    cells.back() = cell(row.eval_time);
    line = fmt::format("{}", fmt::join(cells, "\t"));
  }
  write_file_atomically(path_, fmt::format("{}", fmt::join(lines, "\n")));
  open();
}

}  // namespace lockstep::inline internal
