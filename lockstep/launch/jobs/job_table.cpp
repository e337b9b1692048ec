#include "lockstep/launch/jobs/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/base/text.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kColumns = 14;
constexpr size_t kLauncher = 2;
constexpr size_t kNote = 12;
constexpr char kOwnLauncher[] = "lockstep";
using Row = std::array<std::string, kColumns>;

std::string ranks_of(const JobEntry& job) {
  const int last = job.first_rank + job.local_size - 1;
  const std::string own = job.local_size == 1 ? std::to_string(job.first_rank)
                                              : fmt::format("{}-{}", job.first_rank, last);
  return fmt::format("{} of {}", own, job.world_size);
}

std::string command_line(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) {
    if (!text.empty()) text += ' ';
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"$") == std::string::npos;
    text += plain ? word : "'" + word + "'";
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Shortened for a column of a terminal, with any worker's text made printable.
std::string fitted(std::string text) {
  constexpr size_t kMost = 48;
  text = without_controls(std::move(text));
  if (text.size() <= kMost) return text;
  size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

std::string step_of(const JobProgress& progress) {
  if (progress.total <= 0) return std::to_string(progress.step);
  return fmt::format(
      "{}/{} {:.0f} %", progress.step, progress.total,
      std::floor(100 * static_cast<double>(progress.step) / static_cast<double>(progress.total)));
}

/// Time of a step: "105 ms", "2.31 s".
std::string speed_of(const JobProgress& progress) {
  if (progress.step_seconds <= 0) return "";
  if (progress.step_seconds >= 1) return fmt::format("{:.2f} s/step", progress.step_seconds);
  return fmt::format("{:.{}f} ms/step", progress.step_seconds * 1e3,
                     progress.step_seconds < 0.01 ? 1 : 0);
}

/// All but the note.
void put_progress(Row& row, const JobProgress& progress) {
  if (progress.epoch > 0) row[7] = fmt::format("{}/{}", progress.epoch, progress.num_epochs);
  row[8] = step_of(progress);
  if (!std::isnan(progress.loss)) row[9] = fmt::format("{:.4g}", progress.loss);
  row[10] = speed_of(progress);
  if (progress.seconds_left >= 0) {
    const auto left = static_cast<int64_t>(std::min(progress.seconds_left, 1e12));
    row[11] = format_duration(std::chrono::seconds(left));
  }
}

Row row_of(const JobEntry& job, double now) {
  Row row = {job.run_id,
             std::to_string(job.pid),
             kOwnLauncher,
             fmt::format("{} of {}", job.node_rank, job.num_nodes),
             ranks_of(job),
             format_age((job.ended > 0 ? job.ended : now) - job.began),
             std::to_string(job.restart_count)};
  row.back() = command_line(job.command);
  if (job.stopped) row[kNote] = "stopped";
  if (job.over) row[kNote] = end_of_job(job, now);
  if (job.over && job.ended == 0) row[5] = "";
  if (!job.progress) return row;
  put_progress(row, *job.progress);
  if (!job.stopped) row[kNote] = job.progress->note;
  return row;
}

std::vector<int> rank_numbers(const OtherJob& job) {
  std::vector<int> ranks;
  for (const RankProcess& process : job.ranks) ranks.push_back(process.rank);
  return ranks;
}

/// "0-1 of 4", "0, 3 of 4".
std::string ranks_of(const OtherJob& job) {
  const auto ranks = rank_numbers(job);
  const bool row = ranks.size() > 1 && ranks.back() - ranks.front() + 1 == std::ssize(ranks);
  const auto list = row ? fmt::format("{}-{}", ranks.front(), ranks.back()) : rank_list(ranks);
  return fmt::format("{} of {}", list, job.size);
}

Row row_of(const OtherJob& job, double now) {
  Row row = {job.id, std::to_string(job.ranks.front().pid), job.launcher};
  if (job.node_rank != kUnknownNumber && job.num_nodes != kUnknownNumber)
    row[3] = fmt::format("{} of {}", job.node_rank, job.num_nodes);
  row[4] = ranks_of(job);
  row[5] = format_age(now - job.began());
  if (job.restart_count > 0) row[6] = std::to_string(job.restart_count);
  if (job.progress) {
    put_progress(row, *job.progress);
    row[kNote] = job.progress->note;
  }
  if (job.stopped()) row[kNote] = "stopped";
  row.back() = command_line(job.ranks.front().command);
  return row;
}

void put_progress(nlohmann::json& entry, const JobProgress& progress) {
  entry["epoch"] = progress.epoch;
  entry["num_epochs"] = progress.num_epochs;
  entry["step"] = progress.step;
  entry["total_steps"] = progress.total;
  entry["loss"] = progress.loss;  // NaN becomes null
  entry["step_seconds"] = progress.step_seconds;
  entry["seconds_left"] = progress.seconds_left;
  entry["note"] = progress.note;
}

nlohmann::json json_of(const JobEntry& job, double now) {
  auto entry = nlohmann::json::parse(to_json(job));
  entry["launcher"] = kOwnLauncher;
  entry["seconds"] = (job.ended > 0 ? job.ended : now) - job.began;
  entry["stopped"] = job.stopped;
  entry["over"] = job.over;
  if (!job.over || job.ended == 0) {
    for (const char* name : {"ended", "exit_code", "why"}) entry.erase(name);
  }
  for (const char* name : {"steps", "cause"}) entry.erase(name);
  if (job.progress) put_progress(entry, *job.progress);
  return entry;
}

nlohmann::json json_of(const OtherJob& job, double now) {
  const RankProcess& first = job.ranks.front();
  nlohmann::json entry = {
      {"run_id", job.id},         {"pid", first.pid},
      {"launcher", job.launcher}, {"ranks", rank_numbers(job)},
      {"first_rank", first.rank}, {"local_size", job.ranks.size()},
      {"world_size", job.size},   {"restart_count", job.restart_count},
      {"began", job.began()},     {"seconds", now - job.began()},
      {"folder", first.folder},   {"command", first.command},
      {"stopped", job.stopped()}, {"over", false},
  };
  for (const RankProcess& process : job.ranks) entry["pids"].push_back(process.pid);
  if (job.node_rank != kUnknownNumber) entry["node_rank"] = job.node_rank;
  if (job.num_nodes != kUnknownNumber) entry["num_nodes"] = job.num_nodes;
  if (job.progress) put_progress(entry, *job.progress);
  return entry;
}

/// The first past job; past jobs stand last.
std::vector<JobEntry>::const_iterator first_over(const std::vector<JobEntry>& jobs) {
  return std::find_if(jobs.begin(), jobs.end(), [](const JobEntry& job) { return job.over; });
}

}  // namespace

std::string format_age(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", std::max(0.0, seconds));
  if (seconds < 120 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.0f} d", seconds / 86400);
}

std::string end_of_job(const JobEntry& job, double now) {
  if (job.ended == 0) return "was killed";
  const std::string cause = job.cause.empty() ? "" : fmt::format(" ({})", fitted(job.cause));
  return fmt::format("exit code {}, {} ago{}", job.exit_code, format_age(now - job.ended), cause);
}

std::string job_table(const std::vector<JobEntry>& jobs, double now, size_t width,
                      const std::vector<OtherJob>& others) {
  const Row heading = {"RUN",   "PID",  "LAUNCHER", "HOST",  "RANKS", "UP",   "RESTARTS",
                       "EPOCH", "STEP", "LOSS",     "SPEED", "LEFT",  "NOTE", "COMMAND"};
  std::vector<Row> rows;
  const auto over = first_over(jobs);
  for (auto job = jobs.begin(); job != over; ++job) rows.push_back(row_of(*job, now));
  for (const OtherJob& job : others) rows.push_back(row_of(job, now));
  for (auto job = over; job != jobs.end(); ++job) rows.push_back(row_of(*job, now));
  if (others.empty()) {  // they are known to be none
    for (Row& row : rows) row[kLauncher].clear();
  }
  std::array<size_t, kColumns> widths{};  // 0: not shown
  for (size_t i = 0; i < kColumns; ++i) {
    for (const Row& row : rows) widths[i] = std::max(widths[i], row[i].size());
    const bool always = (i < 7 && i != kLauncher) || i + 1 == kColumns;
    if (always || widths[i] > 0) widths[i] = std::max(widths[i], heading[i].size());
  }
  rows.insert(rows.begin(), heading);
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < kColumns; ++i) {
      if (widths[i] > 0) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line += row.back();
    line = without_controls(std::move(line));
    if (width > 3 && line.size() > width) line = line.substr(0, width - 3) + "...";
    text += line + '\n';
  }
  return text;
}

std::string jobs_as_json(const std::vector<JobEntry>& jobs, double now,
                         const std::vector<OtherJob>& others) {
  auto list = nlohmann::json::array();
  const auto over = first_over(jobs);
  for (auto job = jobs.begin(); job != over; ++job) list.push_back(json_of(*job, now));
  for (const OtherJob& job : others) list.push_back(json_of(job, now));
  for (auto job = over; job != jobs.end(); ++job) list.push_back(json_of(*job, now));
  // Command lines of other programs may have bytes that are not UTF-8.
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace lockstep::inline internal
