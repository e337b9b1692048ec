#pragma once
// The picture at the end of a run.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/observe/chart.h"
#include "lockstep/observe/metrics.h"

namespace lockstep::inline internal {

/// The charts of a run; without values there is none:
///  - the loss over steps, raw and smoothed, with the evaluation's loss;
///  - the training values `logged`, smoothed if there are many: a chart for each power of ten;
///  - every other evaluated metric between 0 and 1 (accuracy);
///  - the metrics with other values, such as a perplexity: a chart for each power of ten;
///  - the learning rate;
///  - the speed of steps over all ranks, raw and smoothed.
std::vector<Chart> run_charts(const std::vector<MetricsRecord>& records,
                              const std::vector<std::string>& logged = {});

/// At most some thousand records of each kind, evenly spaced, and the last: enough for a picture.
/// It takes bounded memory and about a second, for a metrics.jsonl of any length. Lines that are no
/// records are left out. Errors: kNotFound, kIo.
std::vector<MetricsRecord> sampled_metrics(const std::filesystem::path& metrics_jsonl);
inline constexpr size_t kMostSampled = 4096;

/// Draws result.svg from metrics.jsonl. Without records it writes no file and returns false.
/// Errors: as sampled_metrics() and write_file_atomically().
bool write_curves(const std::filesystem::path& metrics_jsonl, const std::filesystem::path& svg,
                  const std::string& title, const std::vector<std::string>& logged = {});

}  // namespace lockstep::inline internal
