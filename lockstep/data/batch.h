#pragma once
// The batch that a loader gives to a trainer, for any kind of data.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct OcrGroundTruth;  // lockstep/data/ocr_batch.h

struct Batch {
  at::Tensor images;                ///< (N, 3, H, W) float32, contiguous; made on the CPU.
  std::vector<at::Tensor> targets;  ///< Targets of the loss: columns of N rows each.
  /// Leading rows that count; the others are padding (see DistributedSampler).
  int64_t valid = 0;
  std::shared_ptr<const OcrGroundTruth> ground_truth{};  ///< For text, in evaluation: N samples.
  /// A line for each unusable sample: in training another one replaces it, in evaluation it is left
  /// out.
  std::vector<std::string> faults{};
  /// A line for each part that was left out of a used sample.
  std::vector<std::string> remarks{};

  /// Copies images and targets to `device`; tensors already there stay.
  void move_to(at::Device device) {
    images = images.to(device);
    for (auto& column : targets) column = column.to(device);
  }
};

/// Gives the batches of one epoch after another. One consumer thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Begins an epoch that reads samples `order`, and drops the rest of the previous one. Only the
  /// first `num_counted` entries count as valid (default: all). To resume within an epoch give the
  /// rest of its order. Errors: kInvalidArgument naming an index out of range.
  virtual void start(int64_t epoch, std::vector<int64_t> order,
                     std::optional<int64_t> num_counted = std::nullopt) = 0;

  /// Announces the arguments of the next start(). Its first batches may be made while the last of
  /// this epoch are taken; they equal those of start() alone. If start() gets other arguments, they
  /// are dropped. At most once after each start().
  virtual void follow(int64_t epoch, std::vector<int64_t> order) {
    static_cast<void>(epoch);
    static_cast<void>(order);
  }

  /// The number of batches for an order of `num_samples`.
  virtual int64_t num_batches(int64_t num_samples) const = 0;

  /// The next batch, or nothing at the end of the epoch. Errors: kTimeout, and any error of making
  /// this batch; then the epoch is over.
  virtual std::optional<Batch> next() = 0;

  /// Whether next() would not wait. The ranks wait for the disk of a rank that is not ready with a
  /// separate deadline (train.disk_timeout_s). A source without this information is always ready.
  virtual bool ready() const { return true; }

  /// Time that next() has waited for data since the source was made.
  virtual double wait_seconds() const = 0;
};

}  // namespace lockstep
