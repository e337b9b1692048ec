#pragma once
// What a loader hands to a trainer, whatever the data are.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct OcrGroundTruth;  // lockstep/data/ocr_batch.h

struct Batch {
  at::Tensor images;                ///< (N, 3, H, W) float32, contiguous; on the CPU, as made.
  std::vector<at::Tensor> targets;  ///< What the loss compares with: columns of N rows each.
  /// Leading rows that count; the others are padding (see DistributedSampler).
  int64_t valid = 0;
  std::shared_ptr<const OcrGroundTruth>
      ground_truth{};  ///< Of text, for evaluation: of the N samples.
  /// A line for each sample that could not be used: in training another stands in its place, in
  /// evaluation it is left out.
  std::vector<std::string> faults{};
  /// A line for each thing that was left out of a sample that is used.
  std::vector<std::string> remarks{};

  /// Copies images and targets there; what is there already stays as it is.
  void move_to(at::Device device) {
    images = images.to(device);
    for (auto& column : targets) column = column.to(device);
  }
};

/// Gives the batches of one epoch after another. One consumer thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Begins an epoch that reads samples `order`, and drops what is left of the one before. Only
  /// the first `num_counted` entries count as valid (default: all). To resume within an epoch give
  /// the rest of its order. Errors: kInvalidArgument naming an index out of range.
  virtual void start(int64_t epoch, std::vector<int64_t> order,
                     std::optional<int64_t> num_counted = std::nullopt) = 0;

  /// What start() will be told next. Its first batches may be made while the last of this epoch are
  /// taken; they are those that start() alone would give. If start() is told otherwise they are
  /// dropped. At most once behind each start().
  virtual void follow(int64_t epoch, std::vector<int64_t> order) {
    static_cast<void>(epoch);
    static_cast<void>(order);
  }

  /// Batches that an order of `num_samples` gives.
  virtual int64_t num_batches(int64_t num_samples) const = 0;

  /// The next batch, or nothing at the end of the epoch. Errors: kTimeout, and whatever making this
  /// batch threw; then the epoch is over.
  virtual std::optional<Batch> next() = 0;

  /// Whether next() would not wait. A trainer's ranks wait for the disk of one that is not ready
  /// with a deadline of its own (train.disk_timeout_s); a source that cannot tell is ready.
  virtual bool ready() const { return true; }

  /// Time that next() has waited for data since the source was made.
  virtual double wait_seconds() const = 0;
};

}  // namespace lockstep
