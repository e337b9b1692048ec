#include "lockstep/data/loader.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "lockstep/base/reading_note.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

void require(bool met, const std::string& what) {
  if (!met) throw Error(ErrorCode::kInvalidArgument, "data loader: " + what);
}

}  // namespace

void check_loader_options(const LoaderOptions& options) {
  require(options.batch_size >= 1, fmt::format("batch_size is {}", options.batch_size));
  require(options.threads >= 1, fmt::format("{} threads", options.threads));
  require(options.prefetch >= 1, fmt::format("prefetch is {}", options.prefetch));
}

void check_order(const std::vector<int64_t>& order, int64_t size) {
  for (const int64_t index : order) {
    require(index >= 0 && index < size, fmt::format("sample {} is not in [0, {})", index, size));
  }
}

int64_t num_batches(const LoaderOptions& options, int64_t num_samples) {
  const int64_t size = options.batch_size;
  return options.drop_remainder ? num_samples / size : (num_samples + size - 1) / size;
}

EpochPlan make_epoch_plan(int64_t epoch, std::vector<int64_t> order,
                          std::optional<int64_t> num_counted, int64_t size) {
  check_order(order, size);
  const auto all = static_cast<int64_t>(order.size());
  return {epoch, std::move(order), num_counted.value_or(all)};
}

EpochBatches::EpochBatches(const LoaderOptions& options, Make make)
    : options_(options), make_(std::move(make)), batches_(options.threads, options.prefetch) {
  check_loader_options(options);
}

Prefetcher<Batch>::Make EpochBatches::maker(Plan plan) {
  return [this, plan = std::move(plan)](int64_t batch) { return make_(*plan, batch); };
}

int64_t EpochBatches::count(const EpochPlan& plan) const {
  return num_batches(options_, static_cast<int64_t>(plan.order.size()));
}

void EpochBatches::start(EpochPlan plan) {
  const Plan expected = std::exchange(following_, nullptr);
  if (expected && *expected == plan && batches_.go_on()) return;
  const int64_t batches = count(plan);
  batches_.start(batches, maker(std::make_shared<const EpochPlan>(std::move(plan))));
}

void EpochBatches::follow(EpochPlan plan) {
  following_ = std::make_shared<const EpochPlan>(std::move(plan));
  batches_.follow(count(*following_), maker(following_));
}

std::optional<Batch> EpochBatches::next() {
  try {
    return batches_.next(Deadline::after(options_.timeout));
  } catch (const Error& error) {
    const auto file = longest_read();
    if (error.code() != ErrorCode::kTimeout || file.empty()) throw;
    throw Error(ErrorCode::kTimeout, fmt::format("{} after {} s, which is reading {}", error.what(),
                                                 options_.timeout.count(), file));
  }
}

Loader::Loader(std::shared_ptr<const ImageDataset> data, ImageTransform transform,
               LoaderOptions options)
    : data_(std::move(data)),
      transform_(std::move(transform)),
      options_(options),
      batches_(options,
               [this](const EpochPlan& epoch, int64_t batch) { return make_batch(epoch, batch); }) {
  require(transform_.input() == data_->shape(), "the transform is for images of another shape");
}

int64_t Loader::num_batches(int64_t num_samples) const {
  return lockstep::num_batches(options_, num_samples);
}

void Loader::start(int64_t epoch, std::vector<int64_t> order, std::optional<int64_t> num_counted) {
  batches_.start(make_epoch_plan(epoch, std::move(order), num_counted, data_->size()));
}

void Loader::follow(int64_t epoch, std::vector<int64_t> order) {
  batches_.follow(make_epoch_plan(epoch, std::move(order), std::nullopt, data_->size()));
}

Batch Loader::make_batch(const EpochPlan& epoch, int64_t batch) const {
  const int64_t begin = batch * options_.batch_size;
  const int64_t rows =
      std::min(options_.batch_size, static_cast<int64_t>(epoch.order.size()) - begin);
  const ImageShape shape = transform_.output();
  Batch made{at::empty({rows, shape.channels, shape.height, shape.width}, at::kFloat),
             {at::empty({rows}, at::kLong)},
             std::clamp<int64_t>(epoch.num_counted - begin, 0, rows)};
  auto* pixels = made.images.data_ptr<float>();
  auto* labels = made.targets[0].data_ptr<int64_t>();
  for (int64_t row = 0; row < rows; ++row, pixels += shape.numel()) {
    const int64_t index = epoch.order[static_cast<size_t>(begin + row)];
    labels[row] = data_->label(index);
    transform_.apply(data_->image(index), epoch.number, index,
                     {pixels, static_cast<size_t>(shape.numel())});
  }
  return made;
}

}  // namespace lockstep
