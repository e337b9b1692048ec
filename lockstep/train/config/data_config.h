#pragma once
// `dataset:` and `loader:` of a configuration.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lockstep/ocr/data/options.h"
#include "lockstep/ocr/transforms/options.h"

namespace lockstep {

/// One item of a classifier's transform_pipeline: RandomCrop {size, padding}, RandomHorizontalFlip
/// {prob}, Normalize {mean, std} of pixels in [0, 1], or NormalizeImage {mean, std} of pixels in
/// [0, 255]. ToCHWImage is accepted and left out: images are in that order anyway.
struct TransformConfig {
  std::string name;
  std::map<std::string, std::vector<double>> args;  ///< A single number is a list of one.
  std::string where;                                ///< For errors: "FILE:LINE".
};

struct DatasetConfig {
  /// Cifar10Dataset; DetDataset, SynthTextDataset; RecDataset, LMDBDataset; of `predict`
  /// PredictDataset.
  std::string type = "Cifar10Dataset";
  std::string dataset_root;  ///< As written, for the log.
  /// dataset_root joined, unless absolute. At least one but for `predict`; of Cifar10Dataset one,
  /// and in `eval` that of `train` when it is absent.
  std::vector<std::filesystem::path> data_dirs;
  /// The same; as many as data_dirs. None of Cifar10Dataset, LMDBDataset and PredictDataset.
  std::vector<std::filesystem::path> label_files;
  /// One for each of data_dirs. The leading round(n * ratio) of its n records, but with `shuffle`
  /// so many drawn at random, where the type is one of MindOCR's.
  std::vector<double> sample_ratios = {1.0};
  bool shuffle = false;  ///< Of the records when they are read; loader.shuffle is that of an epoch.
  std::string usage;     ///< Cifar10Dataset: "train" or "test": which files. By section if absent.
  std::vector<TransformConfig> transforms;  ///< Of Cifar10Dataset.
  std::vector<ocr::Transform> pipeline;     ///< Of the others.
  ocr::LmdbOptions lmdb;                    ///< Of LMDBDataset.
  std::string where;                        ///< For errors: "FILE:LINE".
};

struct LoaderConfig {
  bool shuffle = false;
  int64_t batch_size =
      0;  ///< Per virtual rank: per rank, unless parallel.virtual_ranks says otherwise.
  bool drop_remainder = false;
  int64_t num_workers = 1;
  int64_t prefetch_size = 4;  ///< Batches in flight at least; see batches_ahead().
};

/// Threads that make batches, where a rank has `cores` of its own.
inline int data_threads(const LoaderConfig& config, int cores) {
  return static_cast<int>(std::min<int64_t>(config.num_workers, cores));
}

/// Batches that `threads` make ahead: prefetch_size, but at least one in the making for each thread
/// and one that is ready.
inline int64_t batches_ahead(const LoaderConfig& config, int threads) {
  return std::max(config.prefetch_size, int64_t{threads} + 1);
}

}  // namespace lockstep
