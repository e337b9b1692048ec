#include "lockstep/predict/classifier.h"

#include <ATen/ops/softmax.h>

#include <opencv2/imgproc.hpp>

#include "lockstep/data/cifar10.h"
#include "lockstep/predict/outcomes.h"
#include "lockstep/train/setup.h"

namespace lockstep {
namespace {

std::vector<ocr::Transform> decode_to_rgb() {
  return {ocr::DecodeImage{.img_mode = ocr::ImageMode::kRgb}};
}

cv::Mat resized(const cv::Mat& picture, const ImageShape& shape) {
  const cv::Size size(static_cast<int>(shape.width), static_cast<int>(shape.height));
  if (picture.size() == size) return picture;
  const bool smaller = picture.cols >= size.width && picture.rows >= size.height;
  cv::Mat result;
  cv::resize(picture, result, size, 0, 0, smaller ? cv::INTER_AREA : cv::INTER_LINEAR);
  return result;
}

/// (H, W, C) to (C, H, W).
std::vector<uint8_t> planes_of(const cv::Mat& picture, const ImageShape& shape) {
  std::vector<uint8_t> bytes(static_cast<size_t>(shape.numel()));
  const auto of_plane = static_cast<size_t>(shape.height * shape.width);
  std::vector<cv::Mat> planes;
  for (size_t c = 0; c < static_cast<size_t>(shape.channels); ++c) {
    planes.emplace_back(picture.size(), CV_8U, bytes.data() + c * of_plane);
  }
  cv::split(picture, planes);
  return bytes;
}

}  // namespace

Classifier::Classifier(const PredictStage& stage, c10::Device device)
    : network_(stage, device),
      decode_(decode_to_rgb(), 0, false),
      transform_(make_image_transform(picture_dataset(stage.config), Cifar10::kShape, 0)),
      names_(class_names(stage.config)),
      batch_(static_cast<size_t>(picture_loader(stage.config).batch_size)) {}

ocr::Sample Classifier::load(const std::filesystem::path& picture) const {
  ocr::Sample sample = load_picture(decode_, picture);
  const auto bytes = planes_of(resized(sample.image, transform_.input()), transform_.input());
  const ImageShape shape = transform_.output();
  const int extents[] = {static_cast<int>(shape.channels), static_cast<int>(shape.height),
                         static_cast<int>(shape.width)};
  sample.image = cv::Mat(3, extents, CV_32F);
  transform_.apply(bytes, 0, 0, {sample.image.ptr<float>(), static_cast<size_t>(shape.numel())});
  return sample;
}

std::vector<std::string> Classifier::lines(const Samples& pictures) {
  std::vector<cv::Mat> images;
  for (const auto& one : pictures) images.push_back(one.image);
  const at::Tensor probabilities = at::softmax(network_(images), 1).contiguous();
  const auto classes = static_cast<size_t>(probabilities.size(1));
  std::vector<std::string> lines;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::filesystem::path source(pictures[i].source);
    lines.push_back(class_line(source.filename().string(),
                               {probabilities.data_ptr<float>() + i * classes, classes}, names_));
  }
  return lines;
}

}  // namespace lockstep
