#include "lockstep/train/ocr_data.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "lockstep/error.h"
#include "lockstep/ocr/data/label_file_dataset.h"
#include "lockstep/ocr/data/lmdb_dataset.h"
#include "lockstep/ocr/data/order.h"
#include "lockstep/ocr/data/synth_text_dataset.h"
#include "lockstep/ocr/transforms/byte_form.h"
#include "lockstep/ocr/transforms/pipeline.h"
#include "lockstep/train/own_data.h"
#include "lockstep/train/try_transforms.h"

namespace lockstep::inline internal {
namespace {

/// A subset of a data set.
class ChosenSamples final : public ocr::OcrDataset {
 public:
  ChosenSamples(std::unique_ptr<ocr::OcrDataset> all, std::vector<uint32_t> chosen)
      : all_(std::move(all)), chosen_(std::move(chosen)) {}
  int64_t size() const override { return std::ssize(chosen_); }
  ocr::Sample load(int64_t index) const override {
    return all_->load(chosen_[static_cast<size_t>(index)]);
  }
  std::vector<std::string> notes() const override { return all_->notes(); }

 private:
  std::unique_ptr<ocr::OcrDataset> all_;
  std::vector<uint32_t> chosen_;
};

std::unique_ptr<ocr::OcrDataset> make_synth_text(const DatasetConfig& config, uint64_t seed) {
  if (config.data_dirs.size() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                config.where + ": dataset.data_dir of SynthTextDataset must be one folder");
  }
  auto all = std::make_unique<ocr::SynthTextDataset>(config.data_dirs[0], config.label_files[0]);
  const double ratio = config.sample_ratios.front();
  if (ratio == 1) return all;
  auto chosen = ocr::shuffled(static_cast<uint32_t>(all->size()), seed, 0);
  if (!config.shuffle) std::iota(chosen.begin(), chosen.end(), 0);
  chosen.resize(static_cast<size_t>(ocr::sampled_count(all->size(), ratio)));
  return std::make_unique<ChosenSamples>(std::move(all), std::move(chosen));
}

std::unique_ptr<ocr::OcrDataset> make_dataset(const DatasetConfig& config, uint64_t seed) {
  if (config.type == "LMDBDataset") {
    ocr::LmdbSets sets;
    sets.data_dirs = config.data_dirs;
    sets.sample_ratio = config.sample_ratios.front();
    sets.shuffle = config.shuffle;
    sets.seed = seed;
    sets.options = config.lmdb;
    return std::make_unique<ocr::LmdbDataset>(sets);
  }
  if (config.type == "SynthTextDataset") return make_synth_text(config, seed);
  if (config.type == "DetDataset" || config.type == "RecDataset") {
    ocr::LabelFiles files;
    files.data_dirs = config.data_dirs;
    files.label_files = config.label_files;
    files.sample_ratios = config.sample_ratios;
    files.shuffle = config.shuffle;
    files.seed = seed;
    return std::make_unique<ocr::LabelFileDataset>(files);
  }
  throw Error(ErrorCode::kInvalidArgument,
              config.where + ": dataset.type " + config.type + " cannot be read");
}

/// Checks folders of LMDB and label files. A missing image is reported with the line that names it.
void require_sources(const DatasetConfig& config) {
  const bool lmdb = config.type == "LMDBDataset";
  for (const auto& path : lmdb ? config.data_dirs : config.label_files) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) continue;
    throw Error(ErrorCode::kNotFound, fmt::format("{}: dataset.{}: no {} {}", config.source_where,
                                                  lmdb ? "data_dir" : "label_file",
                                                  lmdb ? "folder" : "file", path.string()));
  }
}

class PipedSamples final : public OcrSamples {
 public:
  PipedSamples(std::unique_ptr<ocr::OcrDataset> data, ocr::Pipeline pipeline)
      : data_(std::move(data)), pipeline_(std::move(pipeline)) {}

  int64_t size() const override { return data_->size(); }
  std::vector<std::string> notes() const override { return data_->notes(); }
  ocr::Sample make(int64_t epoch, int64_t index, int64_t key) const override {
    auto sample = data_->load(index);
    pipeline_.apply(sample, epoch, key);
    return sample;
  }

 private:
  std::unique_ptr<ocr::OcrDataset> data_;
  ocr::Pipeline pipeline_;
};

/// The records of dataset.type with `transforms`. `training`: polygons follow the image when it is
/// resized. The records, their order and the random numbers of transforms depend on `seed` alone.
/// Errors: kInvalidArgument, kNotFound, kCorrupt, naming file and line.
std::shared_ptr<const OcrSamples> make_ocr_samples(const DatasetConfig& config,
                                                   const std::vector<ocr::Transform>& transforms,
                                                   int64_t seed, bool training) {
  require_sources(config);
  const auto bits = static_cast<uint64_t>(seed);
  return std::make_shared<const PipedSamples>(make_dataset(config, bits),
                                              ocr::Pipeline(transforms, bits, training));
}

/// Numbers of the first sample of a registered data set, without its targets.
int64_t elements_of_sample(const BatchMaker& maker) {
  const int64_t first = 0;
  int64_t elements = 0;
  for (const auto& input : maker.make({0, {&first, 1}, 1}).inputs()) elements += input.numel();
  return elements;
}

/// Pixels after the last transform that fixes a size; 0 without one.
int64_t pixels_of(const std::vector<ocr::Transform>& pipeline) {
  int64_t pixels = 0;
  for (const auto& transform : pipeline) {
    if (const auto* crop = std::get_if<ocr::RandomCropWithBBox>(&transform)) {
      pixels = int64_t{crop->crop_size[0]} * crop->crop_size[1];
    } else if (const auto* resize = std::get_if<ocr::RecResizeImg>(&transform)) {
      pixels = int64_t{resize->image_shape[0]} * resize->image_shape[1];
    }
  }
  return pixels;
}

}  // namespace

std::unique_ptr<const BatchMaker> make_ocr_batches(const Config& config, bool training,
                                                   PixelForm form, OcrColumns columns,
                                                   DataParts& parts) {
  const int64_t seed = config.system.seed;
  const auto& dataset = training ? config.train.dataset : config.eval->dataset;
  if (dataset.own) {
    auto maker = make_own_dataset(config, training);
    parts.samples = maker->size();
    return maker;
  }
  std::optional<ocr::ByteForm> bytes;
  if (form == PixelForm::kBytes) bytes = ocr::as_bytes(dataset.pipeline);
  const auto samples =
      make_ocr_samples(dataset, bytes ? bytes->transforms : dataset.pipeline, seed, training);
  parts.samples = samples->size();
  parts.notes = samples->notes();
  return ocr_batches(samples, training ? columns : OcrColumns::kGroundTruth,
                     static_cast<uint64_t>(seed), bytes ? bytes->values : cv::Mat());
}

CheckedData check_ocr_data(const Config& config, OcrColumns columns, int64_t planes) {
  const auto make = [columns](const Config& tried, bool training) {
    DataParts unused;
    return make_ocr_batches(tried, training, PixelForm::kFloats, columns, unused);
  };
  CheckedData data;
  data.image_elements = config.train.dataset.own
                            ? elements_of_sample(*make(config, true))
                            : planes * pixels_of(config.train.dataset.pipeline);
  if (!config.train.dataset.own && ocr::as_bytes(config.train.dataset.pipeline)) {
    data.byte_elements = 3 * pixels_of(config.train.dataset.pipeline);  // the maps stay floats
  }
  std::string why;
  const auto count = [&] {
    const auto maker = make(config, true);
    maker->weights();
    return maker->size();
  };
  const auto samples = count_if_there(count, why);
  data.samples = samples.value_or(config.train.loader.batch_size);
  if (!samples) data.note = fmt::format(", a guess, because: {}", why);
  bool evaluates = false;
  if (config.eval) {
    evaluates = count_if_there([&] { return make(config, false)->size(); }, why).has_value();
    if (!evaluates) data.note += fmt::format("; to evaluate: {}", why);
  }
  data.warnings = try_own_transforms(config, {samples.has_value(), evaluates}, make);
  return data;
}

}  // namespace lockstep::inline internal
