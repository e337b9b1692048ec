#pragma once
// Batches for training and evaluation, made ahead by a few threads.

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/prefetcher.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

struct Batch {
  at::Tensor images;  ///< (N, 3, H, W) float32, contiguous, on the CPU.
  at::Tensor labels;  ///< (N) int64.
  int64_t valid = 0;  ///< Leading rows that count; the others are padding (see DistributedSampler).
};

struct LoaderOptions {
  int64_t batch_size = 1;
  bool drop_remainder = false;        ///< Leave out a last batch that is not full.
  int threads = 1;                    ///< 1 makes over 100,000 CIFAR-10 images a second.
  int64_t prefetch = 4;               ///< Batches made ahead at most; bounds memory.
  std::chrono::seconds timeout{600};  ///< For one batch.
};

/// Reads a data set in a given order. The batches depend on (data, transform, epoch, order) alone,
/// not on threads or timing. One consumer thread; the worker threads end with the loader.
class Loader {
 public:
  /// Errors: kInvalidArgument (batch size, transform for another image shape).
  Loader(std::shared_ptr<const ImageDataset> data, ImageTransform transform, LoaderOptions options);

  /// Begins an epoch that reads samples `order`, and drops what is left of the one before. Only
  /// the first `num_counted` entries count as valid (default: all). To resume within an epoch give
  /// the rest of its order. Errors: kInvalidArgument naming an index out of range.
  void start(int64_t epoch, std::vector<int64_t> order,
             std::optional<int64_t> num_counted = std::nullopt);

  /// Batches that an order of `num_samples` gives.
  int64_t num_batches(int64_t num_samples) const;

  /// The next batch, or nothing at the end of the epoch. Errors: kTimeout, and whatever making this
  /// batch threw; then the epoch is over.
  std::optional<Batch> next();

  /// Time that next() has waited for data since the loader was made.
  double wait_seconds() const { return batches_.wait_seconds(); }

 private:
  struct Epoch {
    int64_t number;
    std::vector<int64_t> order;
    int64_t num_counted;
  };
  Batch make_batch(const Epoch& epoch, int64_t batch) const;

  std::shared_ptr<const ImageDataset> data_;
  ImageTransform transform_;
  LoaderOptions options_;
  Prefetcher<Batch> batches_;  // last: its threads use the above
};

}  // namespace lockstep
