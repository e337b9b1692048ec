#pragma once
// Classification of pictures of any size.

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/data/transforms.h"
#include "lockstep/predict/network.h"

namespace lockstep {

class Classifier {
 public:
  /// Errors: those of Network, make_image_transform() and class_names().
  Classifier(const PredictStage& stage, c10::Device device);

  /// Reads a picture, scales it to the size of the training data, and applies the transforms of
  /// evaluation. Averages areas if that size is smaller. Any number of threads. Errors: those of a
  /// bad picture, naming it.
  ocr::Sample load(const std::filesystem::path& picture) const;

  /// The line of each picture; see class_line().
  std::vector<std::string> lines(const Samples& pictures);

  size_t batch() const { return batch_; }  ///< loader.batch_size

 private:
  Network network_;
  ocr::Pipeline decode_;
  ImageTransform transform_;
  std::vector<std::string> names_;
  size_t batch_;
};

}  // namespace lockstep
