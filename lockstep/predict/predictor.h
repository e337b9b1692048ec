#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/ocr/draw/annotate.h"
#include "lockstep/predict/network.h"

namespace lockstep {

/// The networks of a plan, and what they make of one picture.
class Predictor {
 public:
  /// Keeps a reference to `plan`. A font (predict.vis_font_path) that is not there costs a warning.
  /// Errors: those of Detector and Recogniser.
  Predictor(const PredictPlan& plan, c10::Device device);

  /// The picture's line of the result file; with a detector also draws a copy of the picture, into
  /// plan.output under `name` with "_det_res.png" or "_res.png" behind it.
  /// Errors: those of a bad picture, naming it; kIo for the copy.
  std::string operator()(const std::filesystem::path& picture, const std::string& name);

 private:
  std::string list_regions(const std::string& file, const std::string& name,
                           const Detector::Result& found);
  std::string read_regions(const std::string& file, const std::string& name,
                           const Detector::Result& found);
  void draw(const std::string& file, const cv::Mat& picture,
            const std::vector<ocr::Annotation>& shown);

  const PredictPlan& plan_;
  std::optional<Detector> detector_;
  std::optional<Recogniser> recogniser_;
  std::string font_ = "Sans";
};

}  // namespace lockstep
