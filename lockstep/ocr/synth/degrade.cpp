#include "lockstep/ocr/synth/degrade.h"

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

namespace lockstep::ocr {

void degrade(Dice& dice, cv::Mat& image, const SynthStyle& style) {
  const double blur = dice.real(0, style.blur);
  if (blur > 0.25) cv::GaussianBlur(image, image, {}, blur);
  const double sigma = dice.real(0, style.noise);
  cv::RNG normal((uint64_t{dice.word()} << 32) | dice.word());
  cv::Mat noise(image.size(), CV_16SC3);
  normal.fill(noise, cv::RNG::NORMAL, 0, sigma);
  cv::add(image, noise, image, cv::noArray(), CV_8U);
}

std::vector<uint8_t> encode_jpeg(Dice& dice, const cv::Mat& image, const SynthStyle& style) {
  std::vector<uint8_t> bytes;
  cv::imencode(".jpg", image, bytes, {cv::IMWRITE_JPEG_QUALITY, dice.whole(style.jpeg, 95)});
  return bytes;
}

}  // namespace lockstep::ocr
