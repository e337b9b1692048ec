#pragma once
// Classification of pictures of any size.

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/data/pictures/pipeline.h"
#include "lockstep/data/transforms.h"
#include "lockstep/predict/network.h"

namespace lockstep {

class Classifier {
 public:
  /// Errors: those of Network, make_image_transform(), make_picture_pipeline() and class_names();
  /// kInvalidArgument if the transforms leave pictures in different sizes.
  Classifier(const PredictStage& stage, c10::Device device);

  /// Reads a picture, and applies the transforms of evaluation. A network that was trained on
  /// CIFAR-10 gets it in the size of these data first; areas are averaged if that is smaller. Any
  /// number of threads. Errors: those of a bad picture, naming it.
  ocr::Sample load(const std::filesystem::path& picture) const;

  /// The line of each picture; see class_line().
  std::vector<std::string> lines(const Samples& pictures);

  size_t batch() const { return batch_; }  ///< loader.batch_size

 private:
  /// Both write the network's input, (3, H, W), into the sample's image.
  void to_input(const ImageTransform& transform, ocr::Sample& sample) const;
  void to_input(const PicturePipeline& pipeline, ocr::Sample& sample) const;

  Network network_;
  std::variant<ImageTransform, PicturePipeline> transform_;
  ocr::Pipeline decode_;
  std::vector<std::string> names_;
  size_t batch_;
};

}  // namespace lockstep
