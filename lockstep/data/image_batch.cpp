#include "lockstep/data/image_batch.h"

#include <ATen/ops/empty.h>

#include "lockstep/error.h"

namespace lockstep {
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
    auto* pixels = made.images.data_ptr<float>();
    auto* labels = made.targets[0].data_ptr<int64_t>();
    for (const int64_t index : rows.samples) {
      *labels++ = data_->label(index);
      transform_.apply(data_->image(index), rows.epoch, index,
                       {pixels, static_cast<size_t>(shape.numel())});
      pixels += shape.numel();
    }
    return made;
  }

 private:
  std::shared_ptr<const ImageDataset> data_;
  ImageTransform transform_;
};

}  // namespace

std::unique_ptr<const BatchMaker> image_batches(std::shared_ptr<const ImageDataset> data,
                                                ImageTransform transform) {
  return std::make_unique<ImageBatches>(std::move(data), std::move(transform));
}

}  // namespace lockstep
