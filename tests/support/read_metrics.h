#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lockstep/error.h"
#include "lockstep/observe/log_file.h"
#include "lockstep/observe/metrics.h"

namespace lockstep::inline internal {

/// A whole file. A last line without end is left out. Errors: kNotFound, kCorrupt naming file and
/// line.
inline std::vector<MetricsRecord> read_metrics(const std::filesystem::path& path) {
  std::vector<MetricsRecord> records;
  int64_t number = 0;
  each_whole_line(path, [&](std::string_view line) {
    ++number;
    try {
      records.push_back(decode_metrics(line));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}:{}: {}", path.string(), number, error.what()));
    }
  });
  return records;
}

}  // namespace lockstep::inline internal
