#include "lockstep/data/batches.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/heap.h"
#include "lockstep/base/transform_failed.h"
#include "lockstep/data/pictures/reader.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

class ImageBatches final : public BatchMaker {
 public:
  ImageBatches(std::shared_ptr<const ImageDataset> data, ImageTransform transform,
               ImageFaults faults)
      : data_(std::move(data)), transform_(std::move(transform)), faults_(std::move(faults)) {
    if (transform_.input() == data_->shape()) return;
    throw Error(ErrorCode::kInvalidArgument,
                "data loader: the transform is for images of another shape");
  }

  int64_t size() const override { return data_->size(); }

  Batch make(const BatchRows& rows) const override {
    if (transform_.has_own()) return usable(rows);
    Batch made = empty_batch(rows);
    Row row = first_row(made);
    for (const int64_t index : rows.samples) write(rows.epoch, index, row);
    return made;
  }

 private:
  /// Where the next image goes.
  struct Row {
    float* pixels;
    int64_t* label;
  };

  Batch empty_batch(const BatchRows& rows) const {
    const ImageShape shape = transform_.output();
    const int64_t size = std::ssize(rows.samples);
    return {at::empty({size, shape.channels, shape.height, shape.width}, at::kFloat),
            {at::empty({size}, at::kLong)},
            rows.num_counted};
  }

  static Row first_row(const Batch& batch) {
    return {batch.images.data_ptr<float>(), batch.targets[0].data_ptr<int64_t>()};
  }

  /// Leaves `row` where it is if the image is unusable.
  void write(int64_t epoch, int64_t index, Row& row) const {
    const auto count = static_cast<size_t>(transform_.output().numel());
    *row.label = data_->label(index);
    transform_.apply(data_->image(index), epoch, index, {row.pixels, count});
    row.pixels += count;
    ++row.label;
  }

  /// The same with the image's name before an error of a registered transform.
  void write_named(int64_t epoch, int64_t index, Row& row) const {
    try {
      write(epoch, index, row);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", name(index), error.what()));
    } catch (const TransformFailed& error) {
      throw TransformFailed(fmt::format("{}: {}", name(index), error.what()));
    }
  }

  std::string name(int64_t index) const { return fmt::format("{}: image {}", faults_.data, index); }

  /// Without unusable images, or with others in their place.
  Batch usable(const BatchRows& rows) const {
    const bool evaluates = faults_.bad == BadSample::kLeftOut;
    BatchRows wanted = rows;
    if (evaluates) wanted.samples = rows.samples.first(static_cast<size_t>(rows.num_counted));
    Batch made = empty_batch(wanted);
    Row row = first_row(made);
    const auto make_row = [&](int64_t index) {
      write_named(rows.epoch, index, row);
      return index;
    };
    const int64_t among = faults_.among > 0 ? faults_.among : size();
    auto images = make_usable<int64_t>(wanted.samples, among, faults_.bad, faults_.seed, rows.epoch,
                                       make_row, [&](int64_t index) { return name(index); });
    made.faults = std::move(images.faults);
    if (!evaluates) return made;
    made.valid = std::ssize(images.samples);
    made.images = made.images.narrow(0, 0, made.valid);
    made.targets[0] = made.targets[0].narrow(0, 0, made.valid);
    return made;
  }

  std::shared_ptr<const ImageDataset> data_;
  ImageTransform transform_;
  ImageFaults faults_;
};

class PictureBatches final : public BatchMaker {
 public:
  PictureBatches(PictureReader reader, BadSample bad, PixelForm form)
      : reader_(std::move(reader)), bad_(bad) {
    if (form == PixelForm::kBytes) byte_values_ = byte_values(reader_.pipeline());
  }

  int64_t size() const override { return reader_.index().size(); }

  Batch make(const BatchRows& rows) const override {
    const bool evaluates = bad_ == BadSample::kLeftOut;
    const auto counted = rows.samples.first(static_cast<size_t>(rows.num_counted));
    auto read = reader_.read(rows.epoch, evaluates ? counted : rows.samples);
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
    auto images = at::empty({std::ssize(samples), 3, size.height, size.width}, at::kFloat);
    auto* planes = images.data_ptr<float>();
    for (const auto& sample : samples) {
      reader_.pipeline().write(sample.picture, planes);
      planes += int64_t{3} * size.area();
    }
    return images;
  }

  static at::Tensor bytes_of(const std::vector<PictureSample>& samples, cv::Size size) {
    auto images = at::empty({std::ssize(samples), size.height, size.width, 3}, at::kByte);
    auto* bytes = images.data_ptr<uint8_t>();
    for (const auto& sample : samples) {
      sample.picture.pixels.copyTo(cv::Mat(size, CV_8UC3, bytes));
      bytes += int64_t{3} * size.area();
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
                         reader_.index().where(sample.index));
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

class MixedBatches final : public BatchMaker {
 public:
  MixedBatches(std::unique_ptr<const BatchMaker> maker, const MixedOptions& options)
      : maker_(std::move(maker)), options_(options) {}

  int64_t size() const override { return maker_->size(); }

  Batch make(const BatchRows& rows) const override {
    Batch batch = maker_->make(rows);
    const int64_t size = batch.images.size(0);
    const int64_t of_part = size / options_.parts;
    const ImageShape shape{batch.images.size(1), batch.images.size(2), batch.images.size(3)};
    const int64_t* labels = batch.targets[0].data_ptr<int64_t>();
    auto shares = at::empty({size, options_.num_classes}, at::kFloat);
    for (int64_t first = 0; first < size; first += of_part) {
      const auto count = static_cast<size_t>(of_part);
      mix(options_.mixing, options_.seed, rows.epoch,
          {rows.samples.subspan(static_cast<size_t>(first), count),
           {labels + first, count},
           shape,
           options_.num_classes,
           batch.images.data_ptr<float>() + first * shape.numel(),
           shares.data_ptr<float>() + first * options_.num_classes});
    }
    batch.targets[0] = std::move(shares);
    return batch;
  }

 private:
  std::unique_ptr<const BatchMaker> maker_;
  MixedOptions options_;
};

}  // namespace

std::unique_ptr<const BatchMaker> image_batches(std::shared_ptr<const ImageDataset> data,
                                                ImageTransform transform, ImageFaults faults) {
  return std::make_unique<ImageBatches>(std::move(data), std::move(transform), std::move(faults));
}

std::unique_ptr<const BatchMaker> picture_batches(PictureReader reader, BadSample bad,
                                                  PixelForm form) {
  cv::setNumThreads(1);
  keep_freed_memory();
  return std::make_unique<PictureBatches>(std::move(reader), bad, form);
}

std::unique_ptr<const BatchMaker> mixed_batches(std::unique_ptr<const BatchMaker> maker,
                                                const MixedOptions& options) {
  return std::make_unique<MixedBatches>(std::move(maker), options);
}

}  // namespace lockstep::inline internal
