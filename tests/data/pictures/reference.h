#pragma once
// Results in the form in which decode_reference.py and photo_reference.py have those of Pillow and
// torchvision.

#include <fstream>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "lockstep/base/hash.h"
#include "lockstep/data/pictures/colour.h"
#include "lockstep/data/pictures/reader.h"
#include "tests/ocr/transforms/encode_jpeg.h"

namespace lockstep::inline internal {

/// 64 bits of SHA-256 of the pixels, row by row.
inline uint64_t digest_of(const cv::Mat& picture) {
  Hash hash;
  for (int y = 0; y < picture.rows; ++y) {
    hash.update(picture.ptr(y), static_cast<size_t>(picture.cols) * picture.elemSize());
  }
  return first_64_bits(hash.hex());
}

inline uint64_t digest_of(const std::vector<float>& values) {
  Hash hash;
  hash.update(values.data(), values.size() * sizeof(float));
  return first_64_bits(hash.hex());
}

struct NamedJpeg {
  std::string kind;
  std::vector<uint8_t> bytes;
};

/// The picture in each kind of JPEG_KINDS of decode_reference.py.
inline std::vector<NamedJpeg> jpegs_of(const cv::Mat& rgb) {
  cv::Mat grey, inks;
  cv::extractChannel(with_saturation(rgb, 0), grey, 0);
  cv::merge(std::vector<cv::Mat>{rgb, cv::Mat(rgb.size(), CV_8U, cv::Scalar(255))}, inks);
  return {{"4:4:4", ocr::jpeg_of_kind(rgb, {1, 1})},
          {"4:2:2", ocr::jpeg_of_kind(rgb, {2, 1})},
          {"4:2:0", ocr::jpeg_of_kind(rgb, {2, 2})},
          {"4:2:0 progressive", ocr::jpeg_of_kind(rgb, {2, 2, true})},
          {"grey", ocr::jpeg_of_kind(grey, {})},
          {"four inks", ocr::jpeg_of_kind(inks, {})}};
}

/// What Pillow makes of the inks of a JPEG. OpenCV, which decodes these here, rounds otherwise.
inline cv::Mat rgb_of_inks(const cv::Mat& inks) {
  cv::Mat rgb(inks.size(), CV_8UC3);
  for (int y = 0; y < inks.rows; ++y) {
    for (int x = 0; x < inks.cols; ++x) {
      const auto& ink = inks.at<cv::Vec4b>(y, x);
      for (int c = 0; c < 3; ++c) {
        const int product = (255 - ink[c]) * ink[3] + 128;
        rgb.at<cv::Vec3b>(y, x)[c] =
            static_cast<uint8_t>(ink[3] - (((product >> 8) + product) >> 8));
      }
    }
  }
  return rgb;
}

/// As a data set reads it, from the file `path`, which has them afterwards.
inline cv::Mat read_as_file(const std::vector<uint8_t>& bytes, const std::filesystem::path& path) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  return read_picture(path);
}

}  // namespace lockstep::inline internal
