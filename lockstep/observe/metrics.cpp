#include "lockstep/observe/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/observe/append_line.h"

namespace lockstep {
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

constexpr int64_t kMaxFileBytes = int64_t{8} << 30;

}  // namespace

std::optional<double> MetricsRecord::value(const std::string& name) const {
  for (const auto& [key, number] : values) {
    if (key == name) return number;
  }
  return std::nullopt;
}

std::string encode_metrics(const MetricsRecord& record) {
  ordered_json object;
  object["kind"] = record.kind;
  object["epoch"] = record.epoch;
  object["step"] = record.step;
  for (const auto& [name, number] : record.values) {
    object[name] = std::isfinite(number) ? ordered_json(number) : ordered_json();
  }
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

MetricsRecord decode_metrics(const std::string& line) {
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
    if (!value.is_number() && !value.is_null()) corrupt(fmt::format("'{}' is no number", name));
    const double number =
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    record.values.emplace_back(name, number);
  }
  return record;
}

std::vector<MetricsRecord> read_metrics(const std::filesystem::path& path) {
  const std::string text = read_file(path, kMaxFileBytes);
  std::vector<MetricsRecord> records;
  size_t begin = 0;
  for (int64_t number = 1;; ++number) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) return records;
    try {
      records.push_back(decode_metrics(text.substr(begin, end - begin)));
    } catch (const Error& error) {
      corrupt(fmt::format("{}:{}: {}", path.string(), number, error.what()));
    }
    begin = end + 1;
  }
}

MetricsWriter::MetricsWriter(const std::filesystem::path& path, int64_t resume_step) : path_(path) {
  std::string kept;
  if (resume_step > 0 && std::filesystem::exists(path)) {
    for (const MetricsRecord& record : read_metrics(path)) {
      if (record.step <= resume_step) kept += encode_metrics(record) + "\n";
    }
  }
  write_file_atomically(path, kept);
  fd_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_) throw io_error("open " + path.string());
}

void MetricsWriter::write(const MetricsRecord& record) {
  append_line(fd_.get(), encode_metrics(record), path_.string());
}

}  // namespace lockstep
