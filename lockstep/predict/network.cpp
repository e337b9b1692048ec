#include "lockstep/predict/network.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>
#include <span>
#include <variant>

#include "lockstep/autocast.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint_folder.h"
#include "lockstep/data/pictures/reader.h"
#include "lockstep/error.h"
#include "lockstep/predict/outcomes.h"
#include "lockstep/train/picture_data.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/task/ocr_tasks.h"
#include "lockstep/weights.h"

namespace lockstep::inline internal {
namespace {

ocr::DbPostprocessOptions db_options(const Config& config) {
  if (const auto* options = std::get_if<ocr::DbPostprocessOptions>(&config.postprocess)) {
    return *options;
  }
  throw Error(ErrorCode::kInvalidArgument, "detection needs postprocess.name: DBPostprocess");
}

ocr::Dictionary dictionary_of(const Config& config) {
  const auto* options = std::get_if<ocr::CharacterOptions>(&config.postprocess);
  if (options == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "recognition needs postprocess.name: RecCTCLabelDecode");
  }
  ocr::Dictionary dictionary(*options);
  if (dictionary.num_classes() != config.model.head.out_channels) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model.head.out_channels is {}, the dictionary of postprocess has {} "
                            "classes, the blank included",
                            config.model.head.out_channels, dictionary.num_classes()));
  }
  return dictionary;
}

size_t batch_of(const Config& config) {
  return static_cast<size_t>(picture_loader(config).batch_size);
}

cv::Mat converted(const cv::Mat& image, ocr::ImageMode from, ocr::ImageMode to) {
  using ocr::ImageMode;
  if (from == to) return image;
  cv::Mat result;
  if (to == ImageMode::kGray) {
    cv::cvtColor(image, result, from == ImageMode::kRgb ? cv::COLOR_RGB2GRAY : cv::COLOR_BGR2GRAY);
  } else if (from == ImageMode::kGray) {
    cv::cvtColor(image, result, cv::COLOR_GRAY2BGR);
  } else {
    cv::cvtColor(image, result, cv::COLOR_RGB2BGR);  // the same in both directions
  }
  return result;
}

std::vector<cv::Mat> images_of(const Samples& pictures) {
  std::vector<cv::Mat> images;
  for (const auto& one : pictures) images.push_back(one.image);
  return images;
}

std::optional<ImageShape> stored_shape(const DatasetConfig& train) {
  if (!train.has_small_images()) return std::nullopt;
  return small_images_of(train).shape;
}

ImagePipeline transform_of(const Config& config, const std::optional<ImageShape>& stored) {
  const DatasetConfig& dataset = picture_dataset(config);
  if (stored) {
    DatasetConfig as_trained = dataset;
    as_trained.channels = config.train.dataset.channels;
    return make_small_image_pipeline(as_trained, *stored, 0);
  }
  PicturePipeline pipeline = make_picture_pipeline(dataset, 0);
  if (pipeline.output()) return pipeline;
  throw Error(ErrorCode::kInvalidArgument,
              dataset.where +
                  ": to predict, transform_pipeline needs Resize [height, width] or "
                  "CenterCrop");
}

/// Pictures in files as the training data were decoded: read_picture() ignores EXIF's orientation.
std::vector<ocr::Transform> decode_to_rgb(bool small_images) {
  return {ocr::DecodeImage{.img_mode = ocr::ImageMode::kRgb, .ignore_orientation = !small_images}};
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

/// RGB as a stored image of `shape`.
cv::Mat as_stored(const cv::Mat& picture, const ImageShape& shape) {
  cv::Mat small = resized(picture, shape);
  if (shape.channels == 3) return small;
  cv::Mat grey, result;
  cv::cvtColor(small, grey, cv::COLOR_RGB2GRAY);
  cv::cvtColor(grey, result, cv::COLOR_GRAY2RGB);
  return result;
}

// All write the network's input, (C, H, W), into the sample's image.

void put_input(const ImageTransform& transform, ocr::Sample& sample) {
  const auto bytes = planes_of(resized(sample.image, transform.input()), transform.input());
  const ImageShape shape = transform.output();
  sample.image = planes_for(static_cast<int>(shape.channels), static_cast<int>(shape.height),
                            static_cast<int>(shape.width));
  transform.apply(bytes, 0, 0, {sample.image.ptr<float>(), static_cast<size_t>(shape.numel())});
}

void put_input(const PicturePipeline& pipeline, const MadePicture& made, ocr::Sample& sample) {
  sample.image =
      planes_for(static_cast<int>(pipeline.channels()), made.pixels.rows, made.pixels.cols);
  pipeline.write(made, sample.image.ptr<float>());
}

void put_input(const PicturePipeline& pipeline, ocr::Sample& sample) {
  put_input(pipeline, pipeline.apply(sample.image, 0, 0), sample);
}

ocr::PicturePart whole_part(cv::Size size) {
  return {{{0, 0}, size}};
}

/// Of the file `source`, decoded in the size that the first transform chooses.
void put_reduced_input(const PicturePipeline& pipeline, bool keeps, ocr::Sample& sample) {
  const std::string bytes = read_bytes(sample.source, std::nullopt);
  const auto undecoded = [&](const ocr::ChoosePart& choose) {
    ocr::PicturePart wanted;
    const cv::Mat decoded = decode_bytes(bytes, [&](cv::Size size) {
      sample.raw_size = size;
      wanted = choose(size);
      return keeps && wanted.denominator == 1 ? whole_part(size) : wanted;
    });
    if (!keeps) return decoded;
    const bool is_whole = decoded.size() == sample.raw_size;  // not all formats become smaller
    sample.original = is_whole ? decoded : decode_bytes(bytes, whole_part);
    return is_whole ? decoded(wanted.part) : decoded;
  };
  put_input(pipeline, pipeline.apply(undecoded, 0, 0), sample);
}

/// What a file that cannot be read is to its prediction: see is_of_picture().
ErrorCode code_of_picture(const Error& error) {
  return error.code() == ErrorCode::kIo ? ErrorCode::kCorrupt : error.code();
}

/// The output of a registered network may have any shape.
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

bool same_shape(const cv::Mat& a, const cv::Mat& b) {
  return a.size == b.size;
}

bool is_of_picture(const Error& error) {
  return error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kNotFound ||
         error.code() == ErrorCode::kInvalidArgument;
}

ocr::Sample load_picture(const ocr::Pipeline& pipeline, const std::filesystem::path& picture) {
  ocr::Sample sample;
  sample.source = picture.string();
  try {
    pipeline.apply(sample, 0, 0);
  } catch (const Error& error) {
    throw Error(code_of_picture(error), error.what());
  }
  return sample;
}

Network::Network(const PredictStage& stage, c10::Device device)
    : model_(make_model(without_pretrained(stage.config.model), 0)),
      level_(stage.config.system.amp_level_infer) {
  load_weights(weights_in(stage.weights, stage.config.train.ema), *model_);
  model_->to(device);
  cast_module(*model_, level_, low_precision(device.type()));
  model_->eval();
}

at::Tensor Network::operator()(const std::vector<cv::Mat>& images) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> rows;
  for (const cv::Mat& one : images) {
    rows.push_back(
        at::from_blob(one.data, {one.size[0], one.size[1], one.size[2]}, at::dtype(at::kFloat)));
  }
  const auto batch = at::stack(rows).to(model_->device());
  return forward_at(level_, batch, [&](const at::Tensor& input) { return output_for(input); })
      .cpu()
      .contiguous();
}

at::Tensor Network::output_for(const at::Tensor& input) {
  const auto outputs = model_->compute({input});
  if (outputs.size() == 1) return outputs.front();
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the network has {} outputs; to predict, it needs one", outputs.size()));
}

Detector::Detector(const PredictStage& stage, c10::Device device)
    : network_(stage, device),
      pipeline_(picture_pipeline(stage.config), 0, false),
      options_(db_options(stage.config)),
      mode_(picture_mode(stage.config)),
      batch_(batch_of(stage.config)) {}

ocr::Sample Detector::load(const std::filesystem::path& picture) const {
  return load_picture(pipeline_, picture);
}

std::vector<std::vector<ocr::DetectedRegion>> Detector::operator()(const Samples& pictures) {
  const at::Tensor output = network_(images_of(pictures));
  check_maps(output, pictures.size());
  const auto of_one = static_cast<size_t>(output[0].numel());
  std::vector<std::vector<ocr::DetectedRegion>> regions;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const cv::Mat map(static_cast<int>(output.size(2)), static_cast<int>(output.size(3)), CV_32F,
                      output.data_ptr<float>() + i * of_one);
    regions.push_back(ocr::db_postprocess(map, pictures[i].resize, options_));
  }
  return regions;
}

Recogniser::Recogniser(const PredictStage& stage, c10::Device device)
    : network_(stage, device),
      of_pictures_(picture_pipeline(stage.config), 0, false),
      of_crops_(crop_pipeline(stage.config), 0, false),
      dictionary_(dictionary_of(stage.config)),
      mode_(picture_mode(stage.config)),
      batch_(batch_of(stage.config)) {}

ocr::Sample Recogniser::load(const std::filesystem::path& picture) const {
  return load_picture(of_pictures_, picture);
}

std::vector<ocr::RecognizedText> Recogniser::operator()(const Samples& pictures) {
  return read(images_of(pictures));
}

std::vector<Recogniser::ReadCrop> Recogniser::operator()(const std::vector<cv::Mat>& crops,
                                                         const std::vector<std::string>& names,
                                                         ocr::ImageMode mode) {
  std::vector<ReadCrop> results(crops.size());
  std::vector<size_t> places;  // of the inputs
  std::vector<cv::Mat> inputs;
  const auto flush = [&] {
    if (inputs.empty()) return;
    auto texts = read(inputs);
    for (size_t i = 0; i < texts.size(); ++i) results[places[i]].text = std::move(texts[i]);
    places.clear();
    inputs.clear();
  };
  for (size_t i = 0; i < crops.size(); ++i) {
    cv::Mat input;
    try {
      input = input_of(crops[i], mode, names[i]);
    } catch (const Error& error) {
      if (!is_of_picture(error)) throw;
      results[i].fault = error.what();
      continue;
    }
    const bool full = inputs.size() == batch_;
    if (full || (!inputs.empty() && !same_shape(inputs.back(), input))) flush();
    places.push_back(i);
    inputs.push_back(input);
  }
  flush();
  return results;
}

cv::Mat Recogniser::input_of(const cv::Mat& crop, ocr::ImageMode mode,
                             const std::string& name) const {
  ocr::Sample sample;
  sample.source = name;
  sample.image = converted(crop, mode, mode_);
  sample.raw_size = crop.size();
  of_crops_.apply(sample, 0, 0);
  return sample.image;
}

std::vector<ocr::RecognizedText> Recogniser::read(const std::vector<cv::Mat>& inputs) {
  const at::Tensor output = network_(inputs);
  check_frames(output, inputs.size(), dictionary_.num_classes());
  const auto of_one = static_cast<size_t>(output.size(1) * output.size(2));
  std::vector<ocr::RecognizedText> texts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    texts.push_back(ocr::ctc_text({output.data_ptr<float>() + i * of_one, of_one}, dictionary_));
  }
  return texts;
}

Classifier::Classifier(const PredictStage& stage, c10::Device device)
    : network_(stage, device),
      stored_(stored_shape(stage.config.train.dataset)),
      transform_(transform_of(stage.config, stored_)),
      decode_(decode_to_rgb(stored_.has_value()), 0, false),
      names_(class_names(stage.config, stage.weights)),
      by_itself_(std::holds_alternative<BceConfig>(stage.config.loss)),
      batch_(batch_of(stage.config)),
      top_k_(shown_classes(stage.config)) {}

ocr::Sample Classifier::load(const std::filesystem::path& picture, bool keeps) const {
  const auto* pipeline = std::get_if<PicturePipeline>(&transform_);
  const bool reduces = pipeline != nullptr && pipeline->reduces();
  ocr::Sample sample;
  if (!reduces) sample = load_picture(decode_, picture);
  sample.source = picture.string();
  if (keeps) sample.original = sample.image;
  try {
    if (reduces) {
      put_reduced_input(*pipeline, keeps, sample);
    } else {
      if (pipeline != nullptr && stored_) sample.image = as_stored(sample.image, *stored_);
      std::visit([&](const auto& transform) { put_input(transform, sample); }, transform_);
    }
  } catch (const TransformFailed& error) {
    throw TransformFailed(with_place(picture.string(), error.what()));
  } catch (const Error& error) {
    throw Error(code_of_picture(error), with_place(picture.string(), error.what()));
  }
  return sample;
}

std::vector<Classifier::Found> Classifier::operator()(const Samples& pictures,
                                                      const std::vector<std::string>& files) {
  const at::Tensor logits = network_(images_of(pictures));
  check_scores(logits, pictures.size(), names_.size());
  const at::Tensor probabilities =
      (by_itself_ ? at::sigmoid(logits) : at::softmax(logits, 1)).contiguous();
  const auto classes = static_cast<size_t>(probabilities.size(1));
  std::vector<Found> all;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::span<const float> own(probabilities.data_ptr<float>() + i * classes, classes);
    const auto best = static_cast<size_t>(std::max_element(own.begin(), own.end()) - own.begin());
    all.push_back({class_line(files[i], own, names_, top_k_),
                   fmt::format("{} {:.1f} %", names_.at(best), own[best] * 100)});
  }
  return all;
}

}  // namespace lockstep::inline internal
