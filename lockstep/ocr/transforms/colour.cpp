#include "lockstep/ocr/transforms/colour.h"

#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"

namespace lockstep::ocr {
void scale_brightness(cv::Mat& image, double factor) {
  image.convertTo(image, -1, factor);
}

void scale_contrast(cv::Mat& image, double factor) {
  cv::Mat grey;
  cv::cvtColor(image, grey, cv::COLOR_RGB2GRAY);
  const double mean = std::floor(cv::mean(grey)[0] + 0.5);
  image.convertTo(image, -1, factor, mean * (1 - factor));
}

void scale_saturation(cv::Mat& image, double factor) {
  cv::Mat grey;
  cv::cvtColor(image, grey, cv::COLOR_RGB2GRAY);
  cv::cvtColor(grey, grey, cv::COLOR_GRAY2RGB);
  cv::addWeighted(grey, 1 - factor, image, factor, 0, image);
}

void turn_hue(cv::Mat& image, double turns) {
  cv::Mat hsv;
  cv::cvtColor(image, hsv, cv::COLOR_RGB2HSV_FULL);
  const int shift = static_cast<int>(std::lround(turns * 256)) & 255;
  std::array<cv::Vec3b, 256> values;
  for (int i = 0; i < 256; ++i) {
    const auto same = static_cast<uint8_t>(i);
    values.at(static_cast<size_t>(i)) = {static_cast<uint8_t>(i + shift), same, same};
  }
  cv::LUT(hsv, cv::Mat(1, 256, CV_8UC3, values.data()), hsv);
  cv::cvtColor(hsv, image, cv::COLOR_HSV2RGB_FULL);
}

void adjust_colour(const RandomColorAdjust& options, Sample& sample, Philox& draws) {
  if (sample.image.type() != CV_8UC3) {
    throw Error(ErrorCode::kInvalidArgument, "RandomColorAdjust needs an 8-bit colour image");
  }
  struct Step {
    std::array<double, 2> range;
    double neutral;
    void (*carry_out)(cv::Mat&, double);
  };
  std::array<Step, 4> steps = {{{options.brightness, 1, scale_brightness},
                                {options.contrast, 1, scale_contrast},
                                {options.saturation, 1, scale_saturation},
                                {options.hue, 0, turn_hue}}};
  for (uint32_t left = 4; left > 1; --left) {
    std::swap(steps.at(left - 1), steps.at(static_cast<size_t>(draws.below(left))));
  }
  for (const auto& [range, neutral, carry_out] : steps) {
    if (range[0] == neutral && range[1] == neutral) continue;
    carry_out(sample.image, range[0] + (range[1] - range[0]) * draws.uniform());
  }
}

}  // namespace lockstep::ocr
