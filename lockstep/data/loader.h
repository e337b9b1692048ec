#pragma once
// Batches of labelled images for training and evaluation, made ahead by a few threads.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/data/batch.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/prefetcher.h"
#include "lockstep/data/transforms.h"
#include "lockstep/deadline.h"

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
/// Which samples an epoch has.
struct EpochPlan {
  int64_t number = 0;
  std::vector<int64_t> order;
  int64_t num_counted = 0;

  bool operator==(const EpochPlan&) const = default;
};

/// Of a whole epoch, unless told otherwise. Errors: kInvalidArgument as check_order().
EpochPlan make_epoch_plan(int64_t epoch, std::vector<int64_t> order,
                          std::optional<int64_t> num_counted, int64_t size);
/// Batches that so many samples give.
int64_t num_batches(const LoaderOptions& options, int64_t num_samples);

/// The batches of one epoch after another, made ahead by threads, over the epoch's end too where
/// the next one is known. What the loaders are made of.
class EpochBatches {
 public:
  using Make = std::function<Batch(const EpochPlan& epoch, int64_t batch)>;
  /// Errors: kInvalidArgument as check_loader_options().
  EpochBatches(const LoaderOptions& options, Make make);

  void start(EpochPlan plan);   ///< As BatchSource.
  void follow(EpochPlan plan);  ///< As BatchSource.
  /// Errors: kTimeout naming the file that is read.
  std::optional<Batch> next();
  bool ready() const { return batches_.ready(); }
  double wait_seconds() const { return batches_.wait_seconds(); }

 private:
  using Plan = std::shared_ptr<const EpochPlan>;
  Prefetcher<Batch>::Make maker(Plan plan);
  int64_t count(const EpochPlan& plan) const;

  LoaderOptions options_;
  Make make_;
  Plan following_;
  Prefetcher<Batch> batches_;  // last: its threads use the above
};

/// Reads a data set in a given order; the one target is the labels, (N) int64. The batches depend
/// on (data, transform, epoch, order) alone, not on threads or timing. The worker threads end with
/// the loader.
class Loader final : public BatchSource {
 public:
  /// Errors: kInvalidArgument (batch size, transform for another image shape).
  Loader(std::shared_ptr<const ImageDataset> data, ImageTransform transform, LoaderOptions options);

  void start(int64_t epoch, std::vector<int64_t> order,
             std::optional<int64_t> num_counted = std::nullopt) override;
  void follow(int64_t epoch, std::vector<int64_t> order) override;
  int64_t num_batches(int64_t num_samples) const override;
  std::optional<Batch> next() override { return batches_.next(); }
  bool ready() const override { return batches_.ready(); }
  double wait_seconds() const override { return batches_.wait_seconds(); }

 private:
  Batch make_batch(const EpochPlan& epoch, int64_t batch) const;

  std::shared_ptr<const ImageDataset> data_;
  ImageTransform transform_;
  LoaderOptions options_;
  EpochBatches batches_;  // last: its threads use the above
};

}  // namespace lockstep
