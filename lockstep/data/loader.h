#pragma once
// Batches of labelled images for training and evaluation, made ahead by a few threads.

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/data/batch.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/prefetcher.h"
#include "lockstep/data/transforms.h"

namespace lockstep {

struct LoaderOptions {
  int64_t batch_size = 1;
  bool drop_remainder = false;        ///< Leave out a last batch that is not full.
  int threads = 1;                    ///< 1 makes over 100,000 CIFAR-10 images a second.
  int64_t prefetch = 4;               ///< Batches made ahead at most; bounds memory.
  std::chrono::seconds timeout{600};  ///< For one batch.
};

/// Errors: kInvalidArgument naming the field.
void check_loader_options(const LoaderOptions& options);
/// Errors: kInvalidArgument naming a sample that is not in [0, size).
void check_order(const std::vector<int64_t>& order, int64_t size);
/// Batches that so many samples give.
int64_t num_batches(const LoaderOptions& options, int64_t num_samples);

/// Reads a data set in a given order; the one target is the labels, (N) int64. The batches depend
/// on (data, transform, epoch, order) alone, not on threads or timing. The worker threads end with
/// the loader.
class Loader final : public BatchSource {
 public:
  /// Errors: kInvalidArgument (batch size, transform for another image shape).
  Loader(std::shared_ptr<const ImageDataset> data, ImageTransform transform, LoaderOptions options);

  void start(int64_t epoch, std::vector<int64_t> order,
             std::optional<int64_t> num_counted = std::nullopt) override;
  int64_t num_batches(int64_t num_samples) const override;
  std::optional<Batch> next() override;
  double wait_seconds() const override { return batches_.wait_seconds(); }

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
