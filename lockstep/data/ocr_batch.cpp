#include "lockstep/data/ocr_batch.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <opencv2/core.hpp>

#include "lockstep/base/heap.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

using ocr::Sample;

/// The size of an image of H x W pixels, or, after ToCHWImage, of C x H x W numbers.
struct ImageSize {
  int64_t channels = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  bool operator==(const ImageSize&) const = default;
  int64_t numel() const { return channels * rows * cols; }
};

ImageSize size_of(const cv::Mat& mat) {
  if (mat.dims == 3) return {mat.size[0], mat.size[1], mat.size[2]};
  return {mat.channels(), mat.rows, mat.cols};
}

std::string to_text(const ImageSize& size) {
  return fmt::format("{} x {} x {}", size.channels, size.rows, size.cols);
}

void require_same(const Sample& first, const Sample& other) {
  if (size_of(first.image) == size_of(other.image)) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("one batch has images of {} ({}) and {} ({}): choose loader.batch_size 1, "
                  "or transforms that bring all to one size",
                  to_text(size_of(first.image)), first.source, to_text(size_of(other.image)),
                  other.source));
}

/// Writes the image in the order channels, rows, columns.
void put_planes(const cv::Mat& image, float* values) {
  cv::Mat floats = image;
  if (image.depth() != CV_32F) image.convertTo(floats, CV_32F);
  if (floats.dims == 3) {
    floats.copyTo(cv::Mat(3, floats.size.p, CV_32F, values));
    return;
  }
  std::vector<cv::Mat> planes;
  for (int channel = 0; channel < image.channels(); ++channel) {
    planes.emplace_back(image.rows, image.cols, CV_32F, values + image.total() * channel);
  }
  cv::split(floats, planes);
}

at::Tensor images_of(const std::vector<Sample>& samples) {
  const ImageSize size = size_of(samples.front().image);
  const auto images = at::empty({std::ssize(samples), size.channels, size.rows, size.cols});
  auto* values = images.data_ptr<float>();
  for (const auto& sample : samples) {
    require_same(samples.front(), sample);
    put_planes(sample.image, values);
    values += size.numel();
  }
  return images;
}

/// (N, H, W, 3), as samples of a ByteForm have them.
at::Tensor byte_images_of(const std::vector<Sample>& samples) {
  const cv::Size size = samples.front().image.size();
  const auto images = at::empty({std::ssize(samples), size.height, size.width, 3}, at::kByte);
  auto* bytes = images.data_ptr<uint8_t>();
  for (const auto& sample : samples) {
    require_same(samples.front(), sample);
    if (sample.image.type() != CV_8UC3) {
      throw Error(ErrorCode::kInternal, sample.source + ": is not of 8-bit colours");
    }
    sample.image.copyTo(cv::Mat(size, CV_8UC3, bytes));
    bytes += int64_t{3} * size.area();
  }
  return images;
}

/// (N, H, W) of a map that each sample has in the size of its image.
at::Tensor maps_of(const std::vector<Sample>& samples, cv::Mat Sample::*map, const char* name) {
  const ImageSize of_image = size_of(samples.front().image);
  const cv::Size size(static_cast<int>(of_image.cols), static_cast<int>(of_image.rows));
  const auto maps = at::empty({std::ssize(samples), size.height, size.width});
  auto* values = maps.data_ptr<float>();
  for (const auto& sample : samples) {
    const cv::Mat& own = sample.*map;
    if (own.size() != size || own.type() != CV_32FC1) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} has no {} of its image's size: does dataset.transform_pipeline "
                              "make one, after all that moves pixels?",
                              sample.source, name));
    }
    own.copyTo(cv::Mat(size, CV_32F, values));
    values += size.area();
  }
  return maps;
}

at::Tensor texts_of(const std::vector<Sample>& samples) {
  const auto length = std::ssize(samples.front().text_seq);
  const auto texts = at::empty({std::ssize(samples), length}, at::kInt);
  auto* values = texts.data_ptr<int32_t>();
  for (const auto& sample : samples) {
    if (length == 0 || std::ssize(sample.text_seq) != length) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} has no text_seq: does dataset.transform_pipeline have "
                              "RecCTCLabelEncode?",
                              sample.source));
    }
    values = std::copy(sample.text_seq.begin(), sample.text_seq.end(), values);
  }
  return texts;
}

/// Makes a batch of samples, which all count; consumes them. `byte_values`: see Batch.
Batch collate(std::vector<Sample> samples, OcrColumns columns, const at::Tensor& byte_values) {
  Batch batch;
  batch.valid = std::ssize(samples);
  batch.byte_values = byte_values;
  const bool as_bytes = byte_values.defined();
  auto ground_truth = std::make_shared<OcrGroundTruth>();
  if (samples.empty()) {
    batch.images = as_bytes ? at::empty({0, 1, 1, 3}, at::kByte) : at::empty({0, 3, 1, 1});
    batch.ground_truth = ground_truth;
    return batch;
  }
  batch.images = as_bytes ? byte_images_of(samples) : images_of(samples);
  if (columns == OcrColumns::kDetection) {
    batch.targets = {maps_of(samples, &Sample::binary_map, "binary_map").unsqueeze(1),
                     maps_of(samples, &Sample::mask, "mask"),
                     maps_of(samples, &Sample::thresh_map, "thresh_map"),
                     maps_of(samples, &Sample::thresh_mask, "thresh_mask")};
  } else if (columns == OcrColumns::kRecognition) {
    batch.targets = {texts_of(samples)};
  } else {
    for (auto& sample : samples) {
      sample.image.release();
      sample.original.release();
      sample.encoded.clear();
    }
    ground_truth->samples = std::move(samples);
    batch.ground_truth = std::move(ground_truth);
  }
  return batch;
}

class OcrBatches final : public BatchMaker {
 public:
  OcrBatches(std::shared_ptr<const OcrSamples> samples, OcrColumns columns, uint64_t seed,
             const cv::Mat& byte_values)
      : columns_(columns),
        reader_(std::move(samples), evaluates() ? BadSample::kLeftOut : BadSample::kReplaced,
                seed) {
    if (byte_values.empty()) return;
    byte_values_ = at::empty({byte_values.rows, byte_values.cols}, at::kFloat);
    byte_values.copyTo(cv::Mat(byte_values.size(), CV_32F, byte_values_.data_ptr<float>()));
  }

  int64_t size() const override { return reader_.size(); }

  Batch make(const BatchRows& rows) const override {
    const auto counted = rows.samples.first(static_cast<size_t>(rows.num_counted));
    auto read = reader_.read(rows.epoch, evaluates() ? counted : rows.samples, rows.keys);
    Batch made = collate(std::move(read.samples), columns_, byte_values_);
    if (!evaluates()) made.valid = rows.num_counted;
    made.faults = std::move(read.faults);
    made.remarks = std::move(read.remarks);
    return made;
  }

 private:
  bool evaluates() const { return columns_ == OcrColumns::kGroundTruth; }

  OcrColumns columns_;
  OcrReader reader_;
  at::Tensor byte_values_;  ///< Of bytes; else undefined.
};

}  // namespace
}  // namespace lockstep::inline internal

namespace lockstep {

const std::vector<TextPicture>& text_pictures(const Batch& batch) {
  if (batch.ground_truth && std::ssize(batch.ground_truth->pictures) >= batch.valid) {
    return batch.ground_truth->pictures;
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("a batch of {} samples to evaluate has {} text pictures: a data set gives "
                  "them by set_text_pictures()",
                  batch.valid, batch.ground_truth ? batch.ground_truth->pictures.size() : 0));
}

void set_text_pictures(Batch& batch, std::vector<TextPicture> pictures) {
  auto truth = std::make_shared<OcrGroundTruth>();
  truth->pictures = std::move(pictures);
  batch.ground_truth = std::move(truth);
}

}  // namespace lockstep

namespace lockstep::inline internal {

std::unique_ptr<const BatchMaker> ocr_batches(std::shared_ptr<const OcrSamples> samples,
                                              OcrColumns columns, uint64_t seed,
                                              const cv::Mat& byte_values) {
  cv::setNumThreads(1);
  keep_freed_memory();
  return std::make_unique<OcrBatches>(std::move(samples), columns, seed, byte_values);
}

}  // namespace lockstep::inline internal
