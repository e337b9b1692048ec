#include "lockstep/observe/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/file.h"
#include "lockstep/error.h"
#include "lockstep/observe/log_file.h"

namespace lockstep::inline internal {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void corrupt(const std::string& what) {
  throw Error(ErrorCode::kCorrupt, what);
}

int64_t whole(const ordered_json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_integer()) {
    corrupt(fmt::format("'{}' is missing or no whole number", name));
  }
  return at->get<int64_t>();
}

/// Whole numbers without ".0".
ordered_json number_of(double number) {
  constexpr double kMostExact = 9007199254740992;  // 2^53
  if (!std::isfinite(number)) return {};
  const bool negative_zero = number == 0 && std::signbit(number);
  if (number != std::floor(number) || std::abs(number) > kMostExact || negative_zero) return number;
  return static_cast<int64_t>(number);
}

}  // namespace

std::optional<double> MetricsRecord::value(const std::string& name) const {
  for (const auto& [key, number] : values) {
    if (key == name) return number;
  }
  return std::nullopt;
}

std::optional<std::string> MetricsRecord::text(const std::string& name) const {
  for (const auto& [key, value] : texts) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string utc_time(std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  const auto ms = floor<milliseconds>(time).time_since_epoch().count();
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, ms % 1000);
}

std::optional<double> seconds_of(const std::string& utc_time) {
  std::tm parts{};
  const char* rest = ::strptime(utc_time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  int ms = 0;
  if (rest == nullptr || std::sscanf(rest, ".%3dZ", &ms) != 1) return std::nullopt;
  return static_cast<double>(timegm(&parts)) + ms / 1000.0;
}

std::string encode_metrics(const MetricsRecord& record) {
  ordered_json object;
  object["kind"] = record.kind;
  object["epoch"] = record.epoch;
  object["step"] = record.step;
  for (const auto& [name, text] : record.texts) object[name] = text;
  for (const auto& [name, number] : record.values) {
    object[name] = number_of(number);
  }
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

MetricsRecord decode_metrics(std::string_view line) {
  const ordered_json object = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) corrupt("not a JSON object");
  MetricsRecord record;
  record.epoch = whole(object, "epoch");
  record.step = whole(object, "step");
  if (!object.contains("kind") || !object["kind"].is_string()) {
    corrupt("'kind' is missing or no text");
  }
  record.kind = object["kind"].get<std::string>();
  for (const auto& [name, value] : object.items()) {
    if (name == "kind" || name == "epoch" || name == "step") continue;
    if (value.is_string()) {
      record.texts.emplace_back(name, value.get<std::string>());
      continue;
    }
    if (!value.is_number() && !value.is_null()) {
      corrupt(fmt::format("'{}' is neither number nor text", name));
    }
    const double number =
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    record.values.emplace_back(name, number);
  }
  return record;
}

namespace {

/// Writes lines to a file, many at a time.
class LineSink {
 public:
  LineSink(int fd, std::string what) : fd_(fd), what_(std::move(what)) {}

  void put(std::string_view line) {
    lines_.append(line).push_back('\n');
    if (lines_.size() >= kAtOnce) flush();
  }
  void flush() {
    failed_ = true;  // until the write succeeds
    write_all(fd_, lines_.data(), lines_.size(), what_);
    failed_ = false;
    lines_.clear();
  }
  bool failed() const { return failed_; }

 private:
  static constexpr size_t kAtOnce = 1 << 18;
  int fd_;
  std::string what_;
  std::string lines_;
  bool failed_ = false;
};

}  // namespace

/// Keeps the records of an older file up to `resume_step`. Sets the file aside if it holds other
/// lines.
void MetricsWriter::keep_records(int64_t resume_step, int fd) {
  LineSink kept(fd, path_.string());
  std::string damage;
  int64_t number = 0;
  std::optional<double> from_s, last_s;  // of the last kept record, else the first
  const auto take = [&](std::string_view line) {
    const MetricsRecord record = decode_metrics(line);
    if (const auto time = record.text("time")) last_s = seconds_of(*time);
    if (record.step <= resume_step) kept.put(line);
    if (record.step <= resume_step || !from_s) from_s = last_s;
    if (record.step > resume_step && record.kind == "train") ++lost_.steps;
  };
  try {
    each_whole_line(path_, [&](std::string_view line) {
      ++number;
      try {
        take(line);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kCorrupt) throw;
        if (damage.empty()) damage = fmt::format("{}:{}: {}", path_.string(), number, error.what());
      }
    });
  } catch (const Error& error) {
    if (kept.failed()) throw;  // not the older file's fault
    damage = error.what();
  }
  kept.flush();
  if (!damage.empty()) set_aside(path_, damage);
  if (from_s && last_s) lost_.seconds = *last_s - *from_s;
  if (last_s) lost_.idle_s = seconds_since_1970() - *last_s;
}

MetricsWriter::MetricsWriter(const std::filesystem::path& path, int64_t resume_step,
                             std::optional<MetricsLabels> labels)
    : path_(path), labels_(std::move(labels)) {
  const bool is_there = std::filesystem::exists(path);
  write_file_atomically(path, [&](int fd) {
    if (is_there) keep_records(resume_step, fd);
  });
  fd_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_) throw io_error("open " + path.string());
}

void MetricsWriter::write(const MetricsRecord& record) {
  if (!labels_) return append_line(fd_.get(), encode_metrics(record), path_.string());
  MetricsRecord labelled = record;
  labelled.texts.insert(labelled.texts.begin(),
                        {{"time", utc_time(std::chrono::system_clock::now())},
                         {"run", labels_->run},
                         {"host", labels_->host}});
  labelled.values.emplace_back("rank", labels_->rank);
  append_line(fd_.get(), encode_metrics(labelled), path_.string());
}

}  // namespace lockstep::inline internal
