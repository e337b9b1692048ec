#include "lockstep/predict/classifier.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <span>

#include "lockstep/data/pictures/own_step.h"
#include "lockstep/error.h"
#include "lockstep/predict/outcomes.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/setup.h"

namespace lockstep {
namespace {

using AnyTransform = std::variant<ImageTransform, PicturePipeline>;

AnyTransform transform_of(const Config& config) {
  const DatasetConfig& dataset = picture_dataset(config);
  const DatasetConfig& train = config.train.dataset;
  if (!train.own && !train.has_picture_files()) {
    DatasetConfig as_trained = dataset;
    as_trained.channels = train.channels;
    return make_image_transform(as_trained, small_images_of(train).shape, 0);
  }
  PicturePipeline pipeline = make_picture_pipeline(dataset, 0);
  if (pipeline.output()) return pipeline;
  throw Error(ErrorCode::kInvalidArgument,
              dataset.where +
                  ": to predict, transform_pipeline needs Resize [height, width] or "
                  "CenterCrop");
}

/// As the training data were decoded: read_picture() ignores EXIF's orientation.
std::vector<ocr::Transform> decode_to_rgb(const AnyTransform& transform) {
  return {
      ocr::DecodeImage{.img_mode = ocr::ImageMode::kRgb,
                       .ignore_orientation = std::holds_alternative<PicturePipeline>(transform)}};
}

/// (C, H, W), not initialised.
cv::Mat planes_for(int channels, int height, int width) {
  const int extents[] = {channels, height, width};
  return {3, extents, CV_32F};
}

cv::Mat resized(const cv::Mat& picture, const ImageShape& shape) {
  const cv::Size size(static_cast<int>(shape.width), static_cast<int>(shape.height));
  if (picture.size() == size) return picture;
  const bool smaller = picture.cols >= size.width && picture.rows >= size.height;
  cv::Mat result;
  cv::resize(picture, result, size, 0, 0, smaller ? cv::INTER_AREA : cv::INTER_LINEAR);
  return result;
}

/// (H, W, C) to (C, H, W), or to one grey plane.
std::vector<uint8_t> planes_of(const cv::Mat& picture, const ImageShape& shape) {
  std::vector<uint8_t> bytes(static_cast<size_t>(shape.numel()));
  const auto of_plane = static_cast<size_t>(shape.height * shape.width);
  std::vector<cv::Mat> planes;
  for (size_t c = 0; c < static_cast<size_t>(shape.channels); ++c) {
    planes.emplace_back(picture.size(), CV_8U, bytes.data() + c * of_plane);
  }
  if (shape.channels == 1) {
    cv::cvtColor(picture, planes[0], cv::COLOR_RGB2GRAY);
  } else {
    cv::split(picture, planes);
  }
  return bytes;
}

/// A registered network gives what it likes.
void check_scores(const at::Tensor& scores, size_t pictures, size_t classes) {
  const std::vector<int64_t> wanted = {static_cast<int64_t>(pictures),
                                       static_cast<int64_t>(classes)};
  if (scores.sizes() == wanted) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the network's output for {} pictures has the shape [{}], not [{}]: "
                          "a score for each of model.head.num_classes",
                          pictures, fmt::join(scores.sizes(), ", "), fmt::join(wanted, ", ")));
}

}  // namespace

Classifier::Classifier(const PredictStage& stage, c10::Device device)
    : network_(stage, device),
      transform_(transform_of(stage.config)),
      decode_(decode_to_rgb(transform_), 0, false),
      names_(class_names(stage.config)),
      by_itself_(std::holds_alternative<BceConfig>(stage.config.loss)),
      batch_(static_cast<size_t>(picture_loader(stage.config).batch_size)),
      top_k_(shown_classes(stage.config)) {}

ocr::Sample Classifier::load(const std::filesystem::path& picture) const {
  ocr::Sample sample = load_picture(decode_, picture);
  sample.original = sample.image;
  try {
    std::visit([&](const auto& transform) { to_input(transform, sample); }, transform_);
  } catch (const TransformFailed& error) {
    throw TransformFailed(fmt::format("{}: {}", picture.string(), error.what()));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", picture.string(), error.what()));
  }
  return sample;
}

void Classifier::to_input(const ImageTransform& transform, ocr::Sample& sample) const {
  const auto bytes = planes_of(resized(sample.image, transform.input()), transform.input());
  const ImageShape shape = transform.output();
  sample.image = planes_for(static_cast<int>(shape.channels), static_cast<int>(shape.height),
                            static_cast<int>(shape.width));
  transform.apply(bytes, 0, 0, {sample.image.ptr<float>(), static_cast<size_t>(shape.numel())});
}

void Classifier::to_input(const PicturePipeline& pipeline, ocr::Sample& sample) const {
  const MadePicture made = pipeline.apply(sample.image, 0, 0);
  sample.image = planes_for(3, made.pixels.rows, made.pixels.cols);
  pipeline.write(made, sample.image.ptr<float>());
}

std::vector<Classifier::Found> Classifier::operator()(const Samples& pictures) {
  std::vector<cv::Mat> images;
  for (const auto& one : pictures) images.push_back(one.image);
  const at::Tensor logits = network_(images);
  check_scores(logits, pictures.size(), names_.size());
  const at::Tensor probabilities =
      (by_itself_ ? at::sigmoid(logits) : at::softmax(logits, 1)).contiguous();
  const auto classes = static_cast<size_t>(probabilities.size(1));
  std::vector<Found> all;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::filesystem::path source(pictures[i].source);
    const std::span<const float> own(probabilities.data_ptr<float>() + i * classes, classes);
    const auto best = static_cast<size_t>(std::max_element(own.begin(), own.end()) - own.begin());
    all.push_back({class_line(source.filename().string(), own, names_, top_k_),
                   fmt::format("{} {:.1f} %", names_.at(best), own[best] * 100)});
  }
  return all;
}

}  // namespace lockstep
