#include "lockstep/data/pictures/picture_batches.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "lockstep/base/heap.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

class PictureBatches final : public BatchMaker {
 public:
  PictureBatches(PictureReader reader, BadSample bad, PixelForm form)
      : reader_(std::move(reader)), bad_(bad) {
    if (form == PixelForm::kBytes) byte_values_ = byte_values(reader_.pipeline());
  }

  int64_t size() const override { return reader_.source().size(); }

  Batch make(const BatchRows& rows) const override {
    const bool evaluates = bad_ == BadSample::kLeftOut;
    const auto counted = rows.samples.first(static_cast<size_t>(rows.num_counted));
    auto read = reader_.read(rows.epoch, evaluates ? counted : rows.samples, rows.keys);
    Batch made = collated(read.samples);
    made.valid = evaluates ? std::ssize(read.samples) : rows.num_counted;
    made.faults = std::move(read.faults);
    return made;
  }

 private:
  Batch collated(const std::vector<PictureSample>& samples) const {
    const int64_t count = std::ssize(samples);
    const cv::Size size = samples.empty() ? cv::Size(1, 1) : samples[0].picture.pixels.size();
    Batch made{{}, {at::empty({count}, at::kLong)}};
    auto* labels = made.targets[0].data_ptr<int64_t>();
    for (const auto& sample : samples) {
      if (sample.picture.pixels.size() != size) refuse_sizes(samples[0], sample);
      *labels++ = sample.label;
    }
    made.byte_values = byte_values_;
    made.images = byte_values_.defined() ? bytes_of(samples, size) : floats_of(samples, size);
    return made;
  }

  at::Tensor floats_of(const std::vector<PictureSample>& samples, cv::Size size) const {
    const int64_t channels = reader_.pipeline().channels();
    auto images = at::empty({std::ssize(samples), channels, size.height, size.width}, at::kFloat);
    auto* planes = images.data_ptr<float>();
    for (const auto& sample : samples) {
      reader_.pipeline().write(sample.picture, planes);
      planes += channels * size.area();
    }
    return images;
  }

  at::Tensor bytes_of(const std::vector<PictureSample>& samples, cv::Size size) const {
    const int64_t channels = reader_.pipeline().channels();
    auto images = at::empty({std::ssize(samples), size.height, size.width, channels}, at::kByte);
    auto* bytes = images.data_ptr<uint8_t>();
    for (const auto& sample : samples) {
      const cv::Mat& pixels = sample.picture.pixels;
      cv::Mat out(size, CV_8UC(static_cast<int>(channels)), bytes);
      channels == 1 ? cv::extractChannel(pixels, out, 0) : pixels.copyTo(out);
      bytes += channels * size.area();
    }
    return images;
  }

  static at::Tensor byte_values(const PicturePipeline& pipeline) {
    if (!pipeline.ends_with_bytes()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "picture batches: bytes, but the pipeline ends with a step on floats");
    }
    const ByteTables& tables = pipeline.tables();
    auto values = at::empty({std::ssize(tables), std::ssize(tables[0])}, at::kFloat);
    auto* row = values.data_ptr<float>();
    for (const auto& table : tables) row = std::copy(table.begin(), table.end(), row);
    return values;
  }

  [[noreturn]] void refuse_sizes(const PictureSample& first, const PictureSample& other) const {
    const auto shown = [&](const PictureSample& sample) {
      const cv::Size size = sample.picture.pixels.size();
      return fmt::format("{} x {} ({})", size.width, size.height,
                         reader_.source().where(sample.index));
    };
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("one batch has pictures of {} and {}: transform_pipeline needs Resize "
                            "[height, width], CenterCrop, RandomCrop or RandomResizedCrop",
                            shown(first), shown(other)));
  }

  PictureReader reader_;
  BadSample bad_;
  at::Tensor byte_values_;  ///< Of bytes; else undefined.
};

}  // namespace

std::unique_ptr<const BatchMaker> picture_batches(PictureReader reader, BadSample bad,
                                                  PixelForm form) {
  cv::setNumThreads(1);
  keep_freed_memory();
  return std::make_unique<PictureBatches>(std::move(reader), bad, form);
}

}  // namespace lockstep::inline internal
