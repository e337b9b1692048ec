#pragma once
// A network that only computes, and its three kinds: for regions of text, for words, for classes.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp_policy.h"
#include "lockstep/data/pictures/pipeline.h"
#include "lockstep/data/transforms.h"
#include "lockstep/error.h"
#include "lockstep/model.h"
#include "lockstep/ocr/postprocess/ctc_path.h"
#include "lockstep/ocr/postprocess/db.h"
#include "lockstep/ocr/transforms/pipeline.h"
#include "lockstep/predict/predict_plan.h"

namespace lockstep::inline internal {

/// A model in evaluation mode at system.amp_level_infer, with a stage's weights.
class Network {
 public:
  /// Computes on `device`. Errors: those of make_model() and load_weights().
  Network(const PredictStage& stage, c10::Device device);

  /// Output for images (C, H, W) float32, all of one shape: float32, contiguous, on the CPU.
  /// Errors: kInvalidArgument if a registered network has several, or none.
  at::Tensor operator()(const std::vector<cv::Mat>& images);

 private:
  at::Tensor output_for(const at::Tensor& input);

  std::shared_ptr<Model> model_;
  AmpLevel level_;
};

/// Pictures that go through a network together: loaded, and of equal shape.
using Samples = std::vector<ocr::Sample>;

/// Whether two loaded pictures can go through a network together.
bool same_shape(const cv::Mat& a, const cv::Mat& b);

/// An error of a picture, or of a part of it. Not a full disk or a defect, which end the run.
bool is_of_picture(const Error& error);

/// Reads a picture's file. Errors: those of a bad picture, naming it; they concern it alone.
ocr::Sample load_picture(const ocr::Pipeline& pipeline, const std::filesystem::path& picture);

class Detector {
 public:
  Detector(const PredictStage& stage, c10::Device device);

  /// Reads a picture and makes the network's input of it; `original` is the picture, 8-bit, its
  /// channels in mode(). Any number of threads. Errors: those of a bad picture, naming it (see
  /// ocr::Pipeline).
  ocr::Sample load(const std::filesystem::path& picture) const;

  /// The regions of each picture.
  std::vector<std::vector<ocr::DetectedRegion>> operator()(const Samples& pictures);

  ocr::ImageMode mode() const { return mode_; }
  size_t batch() const { return batch_; }  ///< loader.batch_size

 private:
  Network network_;
  ocr::Pipeline pipeline_;
  ocr::DbPostprocessOptions options_;
  ocr::ImageMode mode_;
  size_t batch_;
};

class Recogniser {
 public:
  /// Errors: kInvalidArgument if network and dictionary differ in their number of classes.
  Recogniser(const PredictStage& stage, c10::Device device);

  /// Reads a picture of one word, as Detector::load().
  ocr::Sample load(const std::filesystem::path& picture) const;

  /// The text of each picture.
  std::vector<ocr::RecognizedText> operator()(const Samples& pictures);

  /// A region of a picture, cut out.
  struct ReadCrop {
    std::optional<ocr::RecognizedText> text{};
    std::string fault{};  ///< Of an unusable one: it has no text.
  };
  /// The crops of one picture, with channels in `mode`, in their order. Those of equal shape after
  /// resizing are computed together, loader.batch_size at a time. `names` are in front of their
  /// faults. Errors: TransformFailed, with the crop's name.
  std::vector<ReadCrop> operator()(const std::vector<cv::Mat>& crops,
                                   const std::vector<std::string>& names, ocr::ImageMode mode);

  size_t batch() const { return batch_; }  ///< loader.batch_size

 private:
  cv::Mat input_of(const cv::Mat& crop, ocr::ImageMode mode, const std::string& name) const;
  std::vector<ocr::RecognizedText> read(const std::vector<cv::Mat>& inputs);

  Network network_;
  ocr::Pipeline of_pictures_;
  ocr::Pipeline of_crops_;
  ocr::Dictionary dictionary_;
  ocr::ImageMode mode_;
  size_t batch_;
};

/// Classifies pictures of any size.
class Classifier {
 public:
  /// Errors: those of Network, make_small_image_pipeline(), make_picture_pipeline() and
  /// class_names(); kInvalidArgument if the transforms leave pictures in different sizes.
  Classifier(const PredictStage& stage, c10::Device device);

  /// Reads a picture, and applies the transforms of evaluation. With `keeps`, `original` is the
  /// picture, RGB. A network that was trained on small images gets it in their size first, and grey
  /// where they are. Areas are averaged if that is smaller. Any number of threads. Errors: those of
  /// a bad picture, naming it.
  ///
  /// A file is read once, and decoded once. Only where the transforms have it decoded smaller, a
  /// picture that is kept is decoded in both sizes.
  ocr::Sample load(const std::filesystem::path& picture, bool keeps) const;

  /// The result of a picture.
  struct Found {
    std::string line;     ///< See class_line().
    std::string caption;  ///< The most probable class: "cat 91.2 %".
  };
  /// `files`: their names in the results.
  std::vector<Found> operator()(const Samples& pictures, const std::vector<std::string>& files);

  size_t batch() const { return batch_; }  ///< loader.batch_size
  size_t top_k() const { return top_k_; }  ///< Classes of a picture in its line.

 private:
  Network network_;
  std::optional<ImageShape> stored_;  ///< Of the small images that it was trained on.
  ImagePipeline transform_;
  ocr::Pipeline decode_;
  std::vector<std::string> names_;
  bool by_itself_;  ///< Each class has a probability of its own, as the loss has it.
  size_t batch_;
  size_t top_k_;
};

}  // namespace lockstep::inline internal
