#include "lockstep/data/batches.h"

#include <ATen/ops/empty.h>

#include <iterator>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

class ImageBatches final : public BatchMaker {
 public:
  ImageBatches(std::shared_ptr<const ImageDataset> data, ImageTransform transform)
      : data_(std::move(data)), transform_(std::move(transform)) {
    if (transform_.input() == data_->shape()) return;
    throw Error(ErrorCode::kInvalidArgument,
                "data loader: the transform is for images of another shape");
  }

  int64_t size() const override { return data_->size(); }

  Batch make(const BatchRows& rows) const override {
    const ImageShape shape = transform_.output();
    const int64_t size = std::ssize(rows.samples);
    Batch made{at::empty({size, shape.channels, shape.height, shape.width}, at::kFloat),
               {at::empty({size}, at::kLong)},
               rows.num_counted};
    const auto count = static_cast<size_t>(shape.numel());
    auto* pixels = made.images.data_ptr<float>();
    auto* label = made.targets[0].data_ptr<int64_t>();
    const auto keys = rows.random_keys();
    for (size_t row = 0; row < rows.samples.size(); ++row) {
      const int64_t index = rows.samples[row];
      *label++ = data_->label(index);
      transform_.apply(data_->image(index), rows.epoch, keys[row], {pixels, count});
      pixels += count;
    }
    return made;
  }

 private:
  std::shared_ptr<const ImageDataset> data_;
  ImageTransform transform_;
};

class MixedBatches final : public BatchMaker {
 public:
  MixedBatches(std::unique_ptr<const BatchMaker> maker, const MixedOptions& options)
      : maker_(std::move(maker)), options_(options) {}

  int64_t size() const override { return maker_->size(); }

  Batch make(const BatchRows& rows) const override {
    Batch batch = maker_->make(rows);
    const int64_t size = batch.images.size(0);
    const ImageShape shape{batch.images.size(1), batch.images.size(2), batch.images.size(3)};
    const int64_t* labels = batch.targets[0].data_ptr<int64_t>();
    auto shares = at::empty({size, options_.num_classes}, at::kFloat);
    mix(options_.mixing, options_.seed, rows.epoch,
        {rows.random_keys(),
         {labels, rows.samples.size()},
         shape,
         options_.num_classes,
         batch.images.data_ptr<float>(),
         shares.data_ptr<float>()});
    batch.targets[0] = std::move(shares);
    return batch;
  }

 private:
  std::unique_ptr<const BatchMaker> maker_;
  MixedOptions options_;
};

}  // namespace

std::unique_ptr<const BatchMaker> image_batches(std::shared_ptr<const ImageDataset> data,
                                                ImageTransform transform) {
  return std::make_unique<ImageBatches>(std::move(data), std::move(transform));
}

std::unique_ptr<const BatchMaker> mixed_batches(std::unique_ptr<const BatchMaker> maker,
                                                const MixedOptions& options) {
  return std::make_unique<MixedBatches>(std::move(maker), options);
}

}  // namespace lockstep::inline internal
