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

  /// Reads a picture, and applies the transforms of evaluation; `original` is the picture, RGB. A
  /// network that was trained on CIFAR-10 gets it in the size of these data first; areas are
  /// averaged if that is smaller. Any number of threads. Errors: those of a bad picture, naming it.
  ocr::Sample load(const std::filesystem::path& picture) const;

  /// The result of a picture.
  struct Found {
    std::string line;     ///< See class_line().
    std::string caption;  ///< The most probable class: "cat 91.2 %".
  };
  std::vector<Found> operator()(const Samples& pictures);

  size_t batch() const { return batch_; }  ///< loader.batch_size
  size_t top_k() const { return top_k_; }  ///< Classes of a picture in its line.

 private:
  /// Both write the network's input, (3, H, W), into the sample's image.
  void to_input(const ImageTransform& transform, ocr::Sample& sample) const;
  void to_input(const PicturePipeline& pipeline, ocr::Sample& sample) const;

  Network network_;
  std::variant<ImageTransform, PicturePipeline> transform_;
  ocr::Pipeline decode_;
  std::vector<std::string> names_;
  bool by_itself_;  ///< Each class has a probability of its own, as the loss has it.
  size_t batch_;
  size_t top_k_;
};

}  // namespace lockstep
