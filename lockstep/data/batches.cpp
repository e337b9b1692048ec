#include "lockstep/data/batches.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <iterator>

#include "lockstep/base/transform_failed.h"
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

std::unique_ptr<const BatchMaker> mixed_batches(std::unique_ptr<const BatchMaker> maker,
                                                const MixedOptions& options) {
  return std::make_unique<MixedBatches>(std::move(maker), options);
}

}  // namespace lockstep::inline internal
