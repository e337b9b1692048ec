#pragma once
// Batches of any data set for training and evaluation, made ahead by a few threads.

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/rounding.h"
#include "lockstep/data/batch_source.h"
#include "lockstep/data/prefetcher.h"

namespace lockstep::inline internal {

struct LoaderOptions {
  int64_t batch_size = 1;
  int64_t parts = 1;                  ///< Of the order, in turn: virtual ranks. See Loader.
  bool drop_remainder = false;        ///< Leave out an incomplete last batch.
  int threads = 1;                    ///< 1 makes over 100,000 CIFAR-10 images a second.
  int64_t prefetch = 4;               ///< Most batches of each part made ahead; limits memory.
  std::chrono::seconds timeout{600};  ///< For one batch.
  c10::Device device = at::kCPU;      ///< Batches for CUDA are made in page-locked memory.
};

/// The number of batches of `batch_size` for `num_samples`.
constexpr int64_t batches_of(int64_t num_samples, int64_t batch_size, bool drop_remainder) {
  return drop_remainder ? num_samples / batch_size : divide_up(num_samples, batch_size);
}

/// Reads a data set in a given order: one call of the maker for each batch. With several parts the
/// order holds as many samples of each, laid in turn by lay_in_turn(). A batch then has samples of
/// one part: the first batch is of the first part, the next one of the second. The batches depend
/// on (maker, epoch, order) alone, not on threads or timing. They are made ahead across the epoch's
/// end too if the next one is known. The worker threads end with the loader.
class Loader final : public BatchSource {
 public:
  /// Errors: kInvalidArgument naming the option.
  Loader(std::unique_ptr<const BatchMaker> maker, const LoaderOptions& options);

  void start(int64_t epoch, EpochOrder order,
             std::optional<int64_t> num_counted = std::nullopt) override;
  void follow(int64_t epoch, EpochOrder order) override;
  int64_t num_batches(int64_t num_samples) const override;
  /// Errors: the maker's; kTimeout naming the file that is read.
  std::optional<Batch> next() override;
  bool ready(int64_t batches) const override { return batches_.ready(batches); }
  double wait_seconds() const override { return batches_.wait_seconds(); }

 private:
  /// The samples of an epoch.
  struct EpochSamples {
    int64_t epoch = 0;
    EpochOrder order;
    int64_t num_counted = 0;

    bool operator==(const EpochSamples&) const = default;
  };
  using SharedSamples = std::shared_ptr<const EpochSamples>;
  SharedSamples checked_samples(int64_t epoch, EpochOrder order,
                                std::optional<int64_t> num_counted) const;
  Prefetcher<Batch>::Make making(SharedSamples samples) const;
  Batch make_batch(const EpochSamples& samples, int64_t batch) const;

  std::unique_ptr<const BatchMaker> maker_;
  LoaderOptions options_;
  SharedSamples following_;
  Prefetcher<Batch> batches_;  // last: its threads use the above
};

}  // namespace lockstep::inline internal
