#pragma once
// Small generated images with text regions.

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "lockstep/ocr/sample.h"

namespace lockstep::ocr {

/// A colour gradient: every pixel differs from its neighbours.
inline cv::Mat gradient(int rows, int cols) {
  cv::Mat image(rows, cols, CV_8UC3);
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < cols; ++x) {
      image.at<cv::Vec3b>(y, x) = cv::Vec3b(cv::saturate_cast<uint8_t>(255 * x / cols),
                                            cv::saturate_cast<uint8_t>(255 * y / rows),
                                            cv::saturate_cast<uint8_t>((7 * x + 3 * y) % 256));
    }
  }
  return image;
}

inline std::vector<uint8_t> encoded(const cv::Mat& image, const std::string& extension) {
  std::vector<uint8_t> bytes;
  cv::imencode(extension, image, bytes);
  return bytes;
}

inline Polygon rectangle(float left, float top, float right, float bottom) {
  return {{left, top}, {right, top}, {right, bottom}, {left, bottom}};
}

/// A JPEG of 320 x 240 pixels with three regions, one of them illegible.
inline Sample scene() {
  Sample sample;
  sample.source = "scene.jpg";
  sample.encoded = encoded(gradient(240, 320), ".jpg");
  sample.label =
      R"([{"transcription": "one", "points": [[40, 50], [120, 50], [120, 80], [40, 80]]},
          {"transcription": "two", "points": [[200, 150], [280, 160], [278, 190], [198, 180]]},
          {"transcription": "###", "points": [[10, 200], [60, 200], [60, 220], [10, 220]]}])";
  return sample;
}

}  // namespace lockstep::ocr
