#include "lockstep/data/loader.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/alignment.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lockstep/base/reading_note.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

void require(bool met, const std::string& what) {
  if (!met) throw Error(ErrorCode::kInvalidArgument, "data loader: " + what);
}

/// Contiguous, in memory of its own: changes in place leave the data set as it is. It begins where
/// libtorch's own memory may begin, because sums in kernels may depend on that.
at::Tensor own_memory(const at::Tensor& tensor, bool pins) {
  if (!tensor.defined() || !tensor.is_cpu() || tensor.layout() != at::kStrided) return tensor;
  if (pins && !tensor.is_pinned()) return tensor;  // Batch::pin() copies it
  const auto address = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  const bool of_others = tensor.storage().allocator() == nullptr;  // at::from_blob()
  const bool shared = of_others || tensor.use_count() > 1 || tensor.storage().use_count() > 1;
  if (!shared && address % c10::gAlignment == 0 && tensor.is_contiguous()) return tensor;
  return tensor.clone(at::MemoryFormat::Contiguous);
}

void take_memory(Batch& batch, bool pins) {
  batch.images = own_memory(batch.images, pins);
  for (auto* columns : {&batch.targets, &batch.more_inputs}) {
    for (auto& column : *columns) column = own_memory(column, pins);
  }
}

}  // namespace

Loader::Loader(std::unique_ptr<const BatchMaker> maker, const LoaderOptions& options)
    : maker_(std::move(maker)),
      options_(options),
      batches_(options.threads, options.prefetch * options.parts) {
  require(options.batch_size >= 1, fmt::format("batch_size is {}", options.batch_size));
  require(options.parts >= 1, fmt::format("{} parts", options.parts));
  require(options.threads >= 1, fmt::format("{} threads", options.threads));
  require(options.prefetch >= 1, fmt::format("prefetch is {}", options.prefetch));
}

int64_t Loader::num_batches(int64_t num_samples) const {
  const int64_t of_all_parts = options_.batch_size * options_.parts;
  return options_.parts * batches_of(num_samples, of_all_parts, options_.drop_remainder);
}

Loader::SharedSamples Loader::checked_samples(int64_t epoch, EpochOrder order,
                                              std::optional<int64_t> num_counted) const {
  const int64_t size = maker_->size();
  for (const int64_t index : order.samples) {
    require(index >= 0 && index < size, fmt::format("sample {} is not in [0, {})", index, size));
  }
  const int64_t all = std::ssize(order.samples);
  require(all % options_.parts == 0, fmt::format("{} samples, {} parts", all, options_.parts));
  require(order.keys.empty() || std::ssize(order.keys) == all,
          fmt::format("{} samples, {} keys", all, order.keys.size()));
  return std::make_shared<const EpochSamples>(
      EpochSamples{epoch, std::move(order), num_counted.value_or(all)});
}

Prefetcher<Batch>::Make Loader::making(SharedSamples samples) const {
  return
      [this, samples = std::move(samples)](int64_t batch) { return make_batch(*samples, batch); };
}

void Loader::start(int64_t epoch, EpochOrder order, std::optional<int64_t> num_counted) {
  const auto samples = checked_samples(epoch, std::move(order), num_counted);
  const auto expected = std::exchange(following_, nullptr);
  if (expected && *expected == *samples && batches_.go_on()) return;
  batches_.start(num_batches(std::ssize(samples->order.samples)), making(samples));
}

void Loader::follow(int64_t epoch, EpochOrder order) {
  following_ = checked_samples(epoch, std::move(order), std::nullopt);
  batches_.follow(num_batches(std::ssize(following_->order.samples)), making(following_));
}

std::optional<Batch> Loader::next() {
  try {
    return batches_.next(Deadline::after(options_.timeout));
  } catch (const Error& error) {
    const auto file = longest_read();
    if (error.code() != ErrorCode::kTimeout || file.empty()) throw;
    throw Error(ErrorCode::kTimeout, fmt::format("{} after {} s, which is reading {}", error.what(),
                                                 options_.timeout.count(), file));
  }
}

Batch Loader::make_batch(const EpochSamples& samples, int64_t batch) const {
  const int64_t first = batch / options_.parts * options_.parts * options_.batch_size;
  const auto& [numbers, keys] = samples.order;
  const int64_t left = (std::ssize(numbers) - first) / options_.parts;
  const int64_t rows = std::min(options_.batch_size, left);
  const int64_t begin = first + batch % options_.parts * rows;
  const auto of_batch = [&](std::span<const int64_t> all) {
    return all.subspan(static_cast<size_t>(begin), static_cast<size_t>(rows));
  };
  Batch made = maker_->make({samples.epoch, of_batch(numbers),
                             std::clamp<int64_t>(samples.num_counted - begin, 0, rows),
                             keys.empty() ? std::span<const int64_t>() : of_batch(keys)});
  const bool pins = options_.device.is_cuda();
  take_memory(made, pins);
  if (pins) {
    const c10::DeviceGuard guard(options_.device);  // this thread's device is still the first
    made.pin();
  }
  return made;
}

}  // namespace lockstep::inline internal
