#include "lockstep/ocr/synth/style.h"

#include <fmt/format.h>

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

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

SynthStyle synth_style(std::string_view difficulty) {
  if (difficulty == "easy") return {5, 0.05, 110, 0.4, 4, 85, 0.1, 6, 20};
  if (difficulty == "normal") return {};
  if (difficulty == "hard") return {28, 0.25, 40, 1.8, 20, 30, 0.5, 40, 10};
  const std::vector<std::string> known = {"easy", "normal", "hard"};
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("unknown difficulty '{}'{} (known: easy, normal, hard)", difficulty,
                          did_you_mean(difficulty, known)));
}

}  // namespace lockstep::ocr
