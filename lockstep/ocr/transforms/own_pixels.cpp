#include "lockstep/ocr/transforms/own_pixels.h"

#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

/// The same with its channels in the other order, and without gaps between its rows.
cv::Mat with_channels_reversed(const cv::Mat& image) {
  cv::Mat out;
  cv::cvtColor(image, out, cv::COLOR_BGR2RGB);
  return out;
}

}  // namespace

void change_pixels(const OwnPixels& own, Sample& sample, Philox& draws) {
  if (sample.image.type() != CV_8UC3) {
    throw Error(ErrorCode::kInvalidArgument, own.name + ": needs a picture of 8-bit colours");
  }
  const cv::Mat rgb = own.bgr ? with_channels_reversed(sample.image) : sample.image.clone();
  own.change({rgb.data, 3 * rgb.total()}, rgb.cols, rgb.rows, draws);
  sample.image = own.bgr ? with_channels_reversed(rgb) : rgb;
}

}  // namespace lockstep::ocr
