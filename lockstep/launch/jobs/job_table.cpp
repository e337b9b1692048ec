#include "lockstep/launch/jobs/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

constexpr size_t kColumns = 7;
using Row = std::array<std::string, kColumns>;

std::string ranks_of(const JobEntry& job) {
  const int last = job.first_rank + job.local_size - 1;
  const std::string own = job.local_size == 1 ? std::to_string(job.first_rank)
                                              : fmt::format("{}-{}", job.first_rank, last);
  return fmt::format("{} of {}", own, job.world_size);
}

std::string command_of(const JobEntry& job) {
  std::string text;
  for (const std::string& word : job.command) {
    if (!text.empty()) text += ' ';
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"$") == std::string::npos;
    text += plain ? word : "'" + word + "'";
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Row row_of(const JobEntry& job, double now) {
  return {job.run_id,
          std::to_string(job.pid),
          fmt::format("{} of {}", job.node_rank, job.num_nodes),
          ranks_of(job),
          format_age(now - job.began),
          std::to_string(job.restart_count),
          command_of(job)};
}

}  // namespace

std::string format_age(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", std::max(0.0, seconds));
  if (seconds < 120 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.0f} d", seconds / 86400);
}

std::string job_table(const std::vector<JobEntry>& jobs, double now, size_t width) {
  std::vector<Row> rows = {{"RUN", "PID", "NODE", "RANKS", "UP", "RESTARTS", "COMMAND"}};
  for (const JobEntry& job : jobs) rows.push_back(row_of(job, now));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < kColumns; ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line += row.back();
    if (width > 3 && line.size() > width) line = line.substr(0, width - 3) + "...";
    text += line + '\n';
  }
  return text;
}

std::string jobs_as_json(const std::vector<JobEntry>& jobs, double now) {
  auto list = nlohmann::json::array();
  for (const JobEntry& job : jobs) {
    auto entry = nlohmann::json::parse(to_json(job));
    entry["seconds"] = now - job.began;
    list.push_back(entry);
  }
  return list.dump(2) + '\n';
}

}  // namespace lockstep
