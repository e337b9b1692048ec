#include "lockstep/data/text_loader.h"

#include <algorithm>
#include <opencv2/core.hpp>

#include "lockstep/base/heap.h"

namespace lockstep {
namespace {

BadSample bad_samples(TextColumns columns) {
  return columns == TextColumns::kTruths ? BadSample::kLeftOut : BadSample::kReplaced;
}

}  // namespace

TextLoader::TextLoader(std::shared_ptr<const TextSamples> samples, TextColumns columns,
                       const LoaderOptions& options, uint64_t seed)
    : columns_(columns),
      options_(options),
      reader_(std::move(samples), bad_samples(columns), seed),
      batches_(options,
               [this](const EpochPlan& epoch, int64_t batch) { return make_batch(epoch, batch); }) {
  cv::setNumThreads(1);
  keep_freed_memory();
}

int64_t TextLoader::num_batches(int64_t num_samples) const {
  return lockstep::num_batches(options_, num_samples);
}

void TextLoader::start(int64_t epoch, std::vector<int64_t> order,
                       std::optional<int64_t> num_counted) {
  batches_.start(make_epoch_plan(epoch, std::move(order), num_counted, reader_.size()));
}

void TextLoader::follow(int64_t epoch, std::vector<int64_t> order) {
  batches_.follow(make_epoch_plan(epoch, std::move(order), std::nullopt, reader_.size()));
}

Batch TextLoader::make_batch(const EpochPlan& epoch, int64_t batch) const {
  const bool judges = columns_ == TextColumns::kTruths;
  const int64_t begin = batch * options_.batch_size;
  const auto size = static_cast<int64_t>(epoch.order.size());
  const int64_t end =
      std::min(begin + options_.batch_size, judges ? std::min(size, epoch.num_counted) : size);
  const auto first = std::min(begin, end);  // a batch of padding alone has none
  auto rows = reader_.read(
      epoch.number,
      std::span(epoch.order).subspan(static_cast<size_t>(first), static_cast<size_t>(end - first)));
  Batch made = make_text_batch(std::move(rows.samples), columns_);
  if (!judges) made.valid = std::clamp<int64_t>(epoch.num_counted - begin, 0, made.valid);
  made.faults = std::move(rows.faults);
  made.remarks = std::move(rows.remarks);
  return made;
}

}  // namespace lockstep
