#include "lockstep/train/try_transforms.h"

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <utility>
#include <variant>

#include "lockstep/base/transform_failed.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// The registered transforms of a pipeline.
struct OwnSteps {
  std::vector<std::string> names;
  std::string where;  ///< Of the first one; of text: of the data set.
};

OwnSteps own_steps(const DatasetConfig& dataset) {
  OwnSteps own;
  for (const auto& item : dataset.transforms) {
    const auto* step = item.own();
    if (step == nullptr) continue;
    if (own.names.empty()) own.where = item.where;
    own.names.push_back(step->name);
  }
  for (const auto& step : dataset.pipeline) {
    const auto* pixels = std::get_if<ocr::OwnPixels>(&step);
    if (pixels == nullptr) continue;
    own.where = dataset.where;
    own.names.push_back(pixels->name);
  }
  return own;
}

Batch first_sample(const BatchMaker& maker) {
  const int64_t first = 0;
  return maker.make({0, {&first, 1}, 1});
}

/// Sample 0 cannot be made, nor replaced, without registered transforms either. A built-in one may
/// refuse its size without them: one that is left out may change it.
bool data_are_unusable(Config config, bool training, const MakeBatches& make) {
  auto& dataset = training ? config.train.dataset : config.eval->dataset;
  std::erase_if(dataset.transforms, [](const auto& item) { return item.own() != nullptr; });
  std::erase_if(dataset.pipeline,
                [](const auto& step) { return std::holds_alternative<ocr::OwnPixels>(step); });
  try {
    first_sample(*make(config, training));
    return false;
  } catch (const Error& error) {
    return error.code() != ErrorCode::kInvalidArgument;
  } catch (const std::exception&) {  // of a built-in transform behind one that is left out here
    return false;
  }
}

std::vector<std::string> try_section(const Config& config, bool training, const MakeBatches& make) {
  const auto& dataset = training ? config.train.dataset : config.eval->dataset;
  const auto own = own_steps(dataset);
  if (own.names.empty()) return {};
  const std::string key = training ? "train.dataset" : "eval.dataset";
  const auto pipeline = fmt::format("{}: {}.transform_pipeline: ", own.where, key);
  const auto maker = make(config, training);
  try {
    Batch once = first_sample(*maker);
    if (at::equal(once.images, first_sample(*maker).images)) return std::move(once.faults);
  } catch (const TransformFailed& error) {
    throw Error(ErrorCode::kInvalidArgument, pipeline + error.what());
  } catch (const Error& error) {
    const auto place = data_are_unusable(config, training, make)
                           ? fmt::format("{}: {}: ", dataset.where, key)
                           : pipeline;
    throw Error(error.code(), place + error.what());
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}sample 0 is another picture when it is made again: {} must depend on "
                          "the picture and the random numbers that it gets alone",
                          pipeline, fmt::join(own.names, ", ")));
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

}  // namespace lockstep::inline internal
