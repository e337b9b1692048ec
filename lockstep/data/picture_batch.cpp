#include "lockstep/data/picture_batch.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "lockstep/base/heap.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

class PictureBatches final : public BatchMaker {
 public:
  PictureBatches(PictureReader reader, BadSample bad) : reader_(std::move(reader)), bad_(bad) {}

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
    Batch made{at::empty({count, 3, size.height, size.width}, at::kFloat),
               {at::empty({count}, at::kLong)}};
    auto* planes = made.images.data_ptr<float>();
    auto* labels = made.targets[0].data_ptr<int64_t>();
    for (const auto& sample : samples) {
      if (sample.picture.pixels.size() != size) refuse_sizes(samples[0], sample);
      reader_.pipeline().write(sample.picture, planes);
      planes += int64_t{3} * size.area();
      *labels++ = sample.label;
    }
    return made;
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
};

}  // namespace

std::unique_ptr<const BatchMaker> picture_batches(PictureReader reader, BadSample bad) {
  cv::setNumThreads(1);
  keep_freed_memory();
  return std::make_unique<PictureBatches>(std::move(reader), bad);
}

}  // namespace lockstep
