#pragma once
// Pictures that tests make.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

namespace lockstep::inline internal {

/// Channel c of the pixel at (x, y): (37 x + 59 y + 83 c + 7 x y + 11 seed) modulo 256; RGB.
inline cv::Mat drawn_picture(int width, int height, int seed = 0) {
  cv::Mat picture(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int value = x * 37 + y * 59 + c * 83 + x * y * 7 + seed * 11;
        picture.at<cv::Vec3b>(y, x)[c] = static_cast<uint8_t>(value % 256);
      }
    }
  }
  return picture;
}

/// Slopes with edges and a fine grain on them, as decode_reference.py draws it; RGB. Unlike those
/// of drawn_picture() its neighbours are alike, so that a lossy format keeps it.
inline cv::Mat textured_picture(int width, int height) {
  cv::Mat picture(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int wave = std::abs((x * (3 + c) + y * 2) % 256 - 128);
        const int grain = (x * y * 7 + x * 13 + y * 29) % 32;
        picture.at<cv::Vec3b>(y, x)[c] = static_cast<uint8_t>(wave + grain + c * 30);
      }
    }
  }
  return picture;
}

/// In the format of the name's extension; makes the folder.
inline void write_picture(const std::filesystem::path& path, const cv::Mat& rgb) {
  std::filesystem::create_directories(path.parent_path());
  cv::Mat bgr;
  cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
  ASSERT_TRUE(cv::imwrite(path.string(), bgr)) << path;
}

inline std::vector<int> bytes_of(const cv::Mat& picture) {
  std::vector<int> bytes;
  for (int y = 0; y < picture.rows; ++y) {
    const auto* row = picture.ptr<uint8_t>(y);
    bytes.insert(bytes.end(), row, row + picture.cols * 3);
  }
  return bytes;
}

}  // namespace lockstep::inline internal
