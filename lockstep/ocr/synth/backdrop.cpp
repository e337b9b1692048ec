#include "lockstep/ocr/synth/backdrop.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <vector>

namespace lockstep::ocr {
namespace {

cv::Mat gradient(Dice& dice, cv::Size size) {
  const cv::Scalar base = draw_colour(dice);
  const double spread = dice.real(5, 60);
  cv::Mat corners(2, 2, CV_32FC3);
  for (int i = 0; i < 4; ++i) {
    for (int channel = 0; channel < 3; ++channel) {
      corners.at<cv::Vec3f>(i / 2, i % 2)[channel] =
          static_cast<float>(base[channel] + dice.real(-spread, spread));
    }
  }
  cv::Mat image;
  cv::resize(corners, image, size, 0, 0, cv::INTER_LINEAR);
  return image;
}

/// Brightness that varies over `cell` pixels.
void add_blotches(Dice& dice, cv::Mat& image, double cell, double strength) {
  const cv::Size coarse(static_cast<int>(image.cols / cell) + 2,
                        static_cast<int>(image.rows / cell) + 2);
  cv::Mat grid(coarse, CV_32F), blotches;
  for (float& value : cv::Mat_<float>(grid)) {
    value = static_cast<float>(dice.real(-strength, strength));
  }
  cv::resize(grid, blotches, image.size(), 0, 0, cv::INTER_CUBIC);
  cv::Mat planes[3] = {blotches, blotches, blotches};
  cv::Mat coloured;
  cv::merge(planes, 3, coloured);
  image += coloured;
}

void add_stripes(Dice& dice, cv::Mat& image) {
  const double angle = dice.real(0, CV_PI);
  const double wave = 2 * CV_PI / dice.log_real(4, 40);
  const double strength = dice.real(2, 12);
  const auto across = std::cos(angle) * wave;
  const auto down = std::sin(angle) * wave;
  for (int y = 0; y < image.rows; ++y) {
    auto* row = image.ptr<cv::Vec3f>(y);
    for (int x = 0; x < image.cols; ++x) {
      row[x] += cv::Vec3f::all(static_cast<float>(strength * std::sin(across * x + down * y)));
    }
  }
}

cv::Point point_in(Dice& dice, cv::Size size) {
  return {dice.whole(-size.width / 8, size.width + size.width / 8),
          dice.whole(-size.height / 8, size.height + size.height / 8)};
}

void add_shape(Dice& dice, cv::Mat& image) {
  const cv::Size size = image.size();
  const int least = std::max(std::min(size.width, size.height), 16);
  const cv::Scalar colour = draw_colour(dice);
  const cv::Point at = point_in(dice, size);
  const int width = dice.chance(0.5) ? cv::FILLED : dice.whole(1, std::max(least / 60, 1) + 1);
  switch (dice.whole(0, 4)) {
    case 0:
      cv::line(image, at, point_in(dice, size), colour, dice.whole(1, std::max(least / 40, 2)),
               cv::LINE_AA);
      break;
    case 1: {
      const cv::Size box(dice.whole(least / 16, least / 2), dice.whole(least / 16, least / 2));
      cv::rectangle(image, cv::Rect(at, box), colour, width, cv::LINE_AA);
      break;
    }
    case 2:
      cv::circle(image, at, dice.whole(least / 30 + 1, least / 4), colour, width, cv::LINE_AA);
      break;
    case 3: {
      const cv::Size axes(dice.whole(least / 20 + 1, least / 3),
                          dice.whole(least / 20 + 1, least / 3));
      cv::ellipse(image, at, axes, dice.real(0, 180), 0, 360, colour, width, cv::LINE_AA);
      break;
    }
    default: {
      std::vector<cv::Point> corners(static_cast<size_t>(dice.whole(3, 6)));
      for (cv::Point& corner : corners) {
        corner =
            at + cv::Point(dice.whole(-least / 4, least / 4), dice.whole(-least / 4, least / 4));
      }
      cv::fillPoly(image, corners, colour, cv::LINE_AA);
    }
  }
}

}  // namespace

cv::Scalar draw_colour(Dice& dice) {
  const double grey = dice.real(10, 245);
  const double colourful = dice.chance(0.4) ? 12 : 90;
  cv::Scalar colour;
  for (int channel = 0; channel < 3; ++channel) {
    colour[channel] = std::clamp(grey + dice.real(-colourful, colourful), 0.0, 255.0);
  }
  return colour;
}

cv::Mat draw_backdrop(Dice& dice, cv::Size size, int clutter) {
  cv::Mat image = gradient(dice, size);
  add_blotches(dice, image, dice.real(24, 120), dice.real(0, 25));
  if (dice.chance(0.6)) add_blotches(dice, image, dice.real(2, 6), dice.real(0, 14));
  if (dice.chance(0.25)) add_stripes(dice, image);
  cv::Mat bytes;
  image.convertTo(bytes, CV_8U);
  for (int i = dice.whole(0, clutter); i > 0; --i) add_shape(dice, bytes);
  return bytes;
}

}  // namespace lockstep::ocr
