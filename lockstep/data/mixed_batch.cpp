#include "lockstep/data/mixed_batch.h"

#include <ATen/ops/empty.h>

namespace lockstep {
namespace {

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

std::unique_ptr<const BatchMaker> mixed_batches(std::unique_ptr<const BatchMaker> maker,
                                                const MixedOptions& options) {
  return std::make_unique<MixedBatches>(std::move(maker), options);
}

}  // namespace lockstep
