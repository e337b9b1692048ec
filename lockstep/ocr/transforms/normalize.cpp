#include "lockstep/ocr/transforms/normalize.h"

#include <array>
#include <opencv2/imgproc.hpp>

#include "lockstep/error.h"

namespace lockstep::ocr {
namespace {

struct Scale {
  float mean, std;
};

/// The scale of channel `i` of the result.
Scale scale_of(const NormalizeImage& options, int channel) {
  const auto at = static_cast<size_t>(channel);
  return {static_cast<float>(options.mean.at(at)), static_cast<float>(options.std.at(at))};
}

void check_image(const cv::Mat& image) {
  const bool is_known = image.dims == 2 && (image.depth() == CV_8U || image.depth() == CV_32F) &&
                        (image.channels() == 1 || image.channels() == 3);
  if (!is_known) {
    throw Error(ErrorCode::kInvalidArgument, "NormalizeImage needs an image of 1 or 3 channels");
  }
}

template <typename T>
void normalize_row(const T* in, Scale scale, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = (static_cast<float>(in[i]) - scale.mean) / scale.std;
}

#if defined(__x86_64__)
/// The same quotients: a product with 1 / std, corrected by its remainder. Division takes three
/// times as long. Source: Markstein, Computation of elementary functions on the IBM RISC
/// System/6000 processor, 1990, theorem 8.3.
__attribute__((target("avx2,fma"))) void normalize_row_fused(const uint8_t* in, Scale scale,
                                                             int count, float* out) {
  const float inverse = 1 / scale.std;
  for (int i = 0; i < count; ++i) {
    const float difference = static_cast<float>(in[i]) - scale.mean;
    const float quotient = difference * inverse;
    const float rest = __builtin_fmaf(-quotient, scale.std, difference);
    out[i] = __builtin_fmaf(rest, inverse, quotient);
  }
}

bool has_fused() {
  static const bool has =
      cv::checkHardwareSupport(CV_CPU_AVX2) && cv::checkHardwareSupport(CV_CPU_FMA3);
  return has;
}
#endif

void normalize_bytes(const uint8_t* in, Scale scale, int count, float* out) {
#if defined(__x86_64__)
  if (has_fused()) return normalize_row_fused(in, scale, count, out);
#endif
  normalize_row(in, scale, count, out);
}

void normalize_plane(cv::Mat plane, Scale scale, float* out) {
  if (plane.isContinuous()) plane = plane.reshape(0, 1);  // one long row: short ones cost half more
  for (int y = 0; y < plane.rows; ++y, out += plane.cols) {
    if (plane.depth() == CV_8U) {
      normalize_bytes(plane.ptr<uint8_t>(y), scale, plane.cols, out);
    } else {
      normalize_row(plane.ptr<float>(y), scale, plane.cols, out);
    }
  }
}

/// Changes no number.
void put_in_order(const NormalizeImage& options, cv::Mat& image) {
  check_image(image);
  if (!options.swap_channels || image.channels() != 3) return;
  cv::Mat reversed;
  cv::cvtColor(image, reversed, cv::COLOR_BGR2RGB);
  image = reversed;
}

}  // namespace

cv::Mat normalized_planes(const NormalizeImage& options, const std::vector<cv::Mat>& planes) {
  const auto channels = static_cast<int>(planes.size());
  const std::array<int, 3> sizes = {channels, planes.front().rows, planes.front().cols};
  cv::Mat result(3, sizes.data(), CV_32F);
  const bool swaps = options.swap_channels && channels == 3;
  for (int channel = 0; channel < channels; ++channel) {
    const auto from = static_cast<size_t>(swaps ? channels - 1 - channel : channel);
    normalize_plane(planes[from], scale_of(options, channel), result.ptr<float>(channel));
  }
  return result;
}

void normalize_to_planar(const NormalizeImage& options, Sample& sample) {
  check_image(sample.image);
  thread_local std::vector<cv::Mat> planes;  // most images have the same size: no allocation
  cv::split(sample.image, planes);
  sample.image = normalized_planes(options, planes);
  sample.planar = true;
}

void normalize_image(const NormalizeImage& options, Sample& sample) {
  if (options.left_out) return put_in_order(options, sample.image);
  const int channels = sample.image.channels();
  normalize_to_planar(options, sample);
  std::vector<cv::Mat> planes;
  for (int channel = 0; channel < channels; ++channel) {
    planes.emplace_back(sample.image.size[1], sample.image.size[2], CV_32F,
                        sample.image.ptr<float>(channel));
  }
  cv::Mat merged;
  cv::merge(planes, merged);
  sample.image = merged;
  sample.planar = false;
}

void to_planar(Sample& sample) {
  if (sample.image.dims != 2) {
    throw Error(ErrorCode::kInvalidArgument, "ToCHWImage: the image is in planes already");
  }
  std::vector<cv::Mat> planes;
  cv::split(sample.image, planes);
  cv::Mat result;
  const std::array<int, 3> sizes = {sample.image.channels(), sample.image.rows, sample.image.cols};
  result.create(3, sizes.data(), sample.image.depth());
  for (int channel = 0; channel < sample.image.channels(); ++channel) {
    cv::Mat plane(sample.image.rows, sample.image.cols, sample.image.depth(), result.ptr(channel));
    planes[static_cast<size_t>(channel)].copyTo(plane);
  }
  sample.image = result;
  sample.planar = true;
}

}  // namespace lockstep::ocr
