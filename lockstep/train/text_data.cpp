#include "lockstep/train/text_data.h"

#include <fmt/format.h>

#include <numeric>

#include "lockstep/error.h"
#include "lockstep/ocr/data/label_file_dataset.h"
#include "lockstep/ocr/data/lmdb_dataset.h"
#include "lockstep/ocr/data/order.h"
#include "lockstep/ocr/data/synth_text_dataset.h"
#include "lockstep/ocr/transforms/pipeline.h"

namespace lockstep {
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
    throw Error(ErrorCode::kNotFound, fmt::format("{}: dataset.{}: no {} {}", config.where,
                                                  lmdb ? "data_dir" : "label_file",
                                                  lmdb ? "folder" : "file", path.string()));
  }
}

class PipedSamples final : public TextSamples {
 public:
  PipedSamples(std::unique_ptr<ocr::OcrDataset> data, ocr::Pipeline pipeline)
      : data_(std::move(data)), pipeline_(std::move(pipeline)) {}

  int64_t size() const override { return data_->size(); }
  std::vector<std::string> notes() const override { return data_->notes(); }
  ocr::Sample make(int64_t epoch, int64_t index) const override {
    auto sample = data_->load(index);
    pipeline_.apply(sample, epoch, index);
    return sample;
  }

 private:
  std::unique_ptr<ocr::OcrDataset> data_;
  ocr::Pipeline pipeline_;
};

}  // namespace

OcrColumns text_columns(ModelType type, bool training) {
  if (!training) return OcrColumns::kGroundTruth;
  return type == ModelType::kDet ? OcrColumns::kDetection : OcrColumns::kRecognition;
}

std::shared_ptr<const TextSamples> make_text_samples(const DatasetConfig& config, int64_t seed,
                                                     bool training) {
  require_sources(config);
  const auto bits = static_cast<uint64_t>(seed);
  return std::make_shared<const PipedSamples>(make_dataset(config, bits),
                                              ocr::Pipeline(config.pipeline, bits, training));
}

}  // namespace lockstep
