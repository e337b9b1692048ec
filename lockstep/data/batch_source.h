#pragma once
// The trainer's view of data: batches of one epoch after another.

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/batch.h"

namespace lockstep::inline internal {

/// The samples that an epoch reads, in this order.
struct EpochOrder {
  std::vector<int64_t> samples;
  std::vector<int64_t> keys{};  ///< See BatchRows; as many, or none.

  bool operator==(const EpochOrder&) const = default;
};

/// Gives the batches of one epoch after another. One consumer thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Begins an epoch that reads `order`, and drops the rest of the previous one. Only the first
  /// `num_counted` entries count as valid (default: all). To resume within an epoch give the rest
  /// of its order. Errors: kInvalidArgument naming an index out of range, or another number of
  /// keys.
  virtual void start(int64_t epoch, EpochOrder order,
                     std::optional<int64_t> num_counted = std::nullopt) = 0;

  /// Announces the arguments of the next start(). Its first batches may be made while the last of
  /// this epoch are taken; they equal those of start() alone. If start() gets other arguments, they
  /// are dropped. At most once after each start().
  virtual void follow(int64_t epoch, EpochOrder order) {
    static_cast<void>(epoch);
    static_cast<void>(order);
  }

  /// The number of batches, of all parts, for an order of `num_samples`.
  virtual int64_t num_batches(int64_t num_samples) const = 0;

  /// The next batch, or nothing at the end of the epoch. Errors: kTimeout, and any error of making
  /// this batch; then the epoch is over.
  virtual std::optional<Batch> next() = 0;

  /// Whether the next `batches` calls of next() would not wait. The ranks wait for the disk of a
  /// rank that is not ready with a separate deadline (train.disk_timeout_s). A source without this
  /// information is always ready.
  virtual bool ready(int64_t batches) const {
    static_cast<void>(batches);
    return true;
  }

  /// Time that next() has waited for data since the source was made.
  virtual double wait_seconds() const = 0;
};

}  // namespace lockstep::inline internal
