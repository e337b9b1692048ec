#pragma once
// The data sets of small images that are read into memory whole, by their type in a configuration.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::inline internal {

struct SmallImages {
  std::string_view type;  ///< `dataset.type`.
  bool coarse = false;    ///< `labels: coarse` of Cifar100Dataset.
  ImageShape shape;
  int64_t num_classes = 0;
  int64_t official_train = 0;  ///< Images for training of the published data set.
  int64_t official_test = 0;

  using Path = std::filesystem::path;
  std::shared_ptr<const ImageDataset> (*load)(const Path& dir, Split split) = nullptr;
  int64_t (*count)(const Path& dir, Split split) = nullptr;        ///< See count_cifar10().
  std::string (*missing)(const Path& dir, Split split) = nullptr;  ///< missing_cifar10_warning().
  /// By number; empty if no file has them.
  std::vector<std::string> (*class_names)(const Path& dir) = nullptr;

  int64_t official_count(Split split) const {
    return (split != Split::kTest ? official_train : 0) +
           (split != Split::kTrain ? official_test : 0);
  }
};

/// Of Cifar10Dataset, Cifar100Dataset, MnistDataset or FashionMnistDataset. Errors: kInternal for
/// another type.
const SmallImages& small_images(std::string_view type, bool coarse);

}  // namespace lockstep::inline internal
