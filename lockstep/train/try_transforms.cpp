#include "lockstep/train/try_transforms.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <variant>

#include "lockstep/base/transform_failed.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

/// The registered transforms of a pipeline.
struct OwnSteps {
  std::vector<std::string> names;
  std::string where;  ///< Of the first one; of text: of the data set.
};

OwnSteps own_steps(const DatasetConfig& dataset) {
  OwnSteps own;
  for (const auto& item : dataset.transforms) {
    if (!item.own) continue;
    if (own.names.empty()) own.where = item.where;
    own.names.push_back(item.name);
  }
  for (const auto& step : dataset.pipeline) {
    const auto* pixels = std::get_if<ocr::OwnPixels>(&step);
    if (pixels == nullptr) continue;
    own.where = dataset.where;
    own.names.push_back(pixels->name);
  }
  return own;
}

/// Errors of `body` begin with `key`.
template <typename Body>
auto at_key(const std::string& key, const Body& body) {
  try {
    return body();
  } catch (const TransformFailed& error) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", key, error.what()));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", key, error.what()));
  }
}

std::vector<std::string> try_section(const Config& config, bool training, const MakeBatches& make) {
  const auto own = own_steps(training ? config.train.dataset : config.eval->dataset);
  if (own.names.empty()) return {};
  const auto key =
      fmt::format("{}: {}.dataset.transform_pipeline", own.where, training ? "train" : "eval");
  const auto maker = make(training);
  const int64_t first = 0;
  return at_key(key, [&] {
    const BatchRows rows{0, {&first, 1}, 1};
    Batch once = maker->make(rows);
    if (at::equal(once.images, maker->make(rows).images)) return std::move(once.faults);
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("sample 0 is another picture when it is made again: {} must depend on "
                            "the picture and the random numbers that it gets alone",
                            fmt::join(own.names, ", ")));
  });
}

}  // namespace

std::vector<std::string> try_own_transforms(const Config& config, TriedSections sections,
                                            const MakeBatches& make) {
  std::vector<std::string> lines;
  if (sections.train) lines = try_section(config, true, make);
  if (!sections.eval) return lines;
  const auto more = try_section(config, false, make);
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

}  // namespace lockstep
