#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/ocr/draw/annotate.h"
#include "lockstep/predict/network.h"
#include "lockstep/predict/outcomes.h"

namespace lockstep::inline internal {

/// The networks of a plan, and their results for a picture.
class Predictor {
 public:
  /// Keeps a reference to `plan`. A missing font (predict.vis_font_path) costs a warning.
  /// Errors: those of Classifier, Detector and Recogniser.
  Predictor(const PredictPlan& plan, c10::Device device);

  /// Reads a picture for the first network; `source` stays its path, and `original` is empty unless
  /// plan.keeps_pictures(). Any number of threads.
  /// Errors: those of a bad picture, naming it.
  ocr::Sample load(const std::filesystem::path& picture) const;

  /// Number of pictures that go through the first network at once: loader.batch_size.
  size_t batch() const;

  /// The result file's line for each of `pictures`, which are of equal shape. A region that the
  /// recogniser cannot use is left out, and is a fault of its picture's outcome. With plan.draw and
  /// a detector or classifier it also draws a copy of each, into plan.output under its name with
  /// "_det_res.png", "_res.png" or "_cls_res.png" appended. Errors: kIo for a copy.
  std::vector<Outcome> operator()(const Samples& pictures, const std::vector<std::string>& names);

 private:
  ocr::Sample load_whole(const std::filesystem::path& picture) const;
  using Regions = std::vector<ocr::DetectedRegion>;
  std::vector<Outcome> classify(const Samples& pictures, const std::vector<std::string>& names);
  std::vector<Outcome> read_words(const Samples& pictures);
  std::string list_regions(const ocr::Sample& picture, const std::string& name,
                           const Regions& found);
  Outcome read_regions(const ocr::Sample& picture, const std::string& name, const Regions& found);
  void draw(const std::string& file, const cv::Mat& picture, ocr::ImageMode mode,
            const std::vector<ocr::Annotation>& shown);

  const PredictPlan& plan_;
  std::optional<Classifier> classifier_;
  std::optional<Detector> detector_;
  std::optional<Recogniser> recogniser_;
  std::string font_ = "Sans";
};

}  // namespace lockstep::inline internal
