#pragma once
// Batches of text in images, made ahead by threads.

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/data/loader.h"
#include "lockstep/data/text_batch.h"
#include "lockstep/data/text_reader.h"

namespace lockstep {

/// Reads samples in a given order; the batches depend on (samples, epoch, order, seed) alone.
///
/// A sample that cannot be made costs a line in Batch::faults. With targets (training) another
/// stands in its place; with kTruths (evaluation) it is left out, and so is the padding behind the
/// samples that count: batches may be smaller, or empty.
class TextLoader final : public BatchSource {
 public:
  /// OpenCV's own threads are turned off for the whole process: samples are made in parallel. So is
  /// giving freed memory back to the system (keep_freed_memory()).
  /// Errors: kInvalidArgument (as Loader).
  TextLoader(std::shared_ptr<const TextSamples> samples, TextColumns columns,
             const LoaderOptions& options, uint64_t seed);

  void start(int64_t epoch, std::vector<int64_t> order,
             std::optional<int64_t> num_counted = std::nullopt) override;
  void follow(int64_t epoch, std::vector<int64_t> order) override;
  int64_t num_batches(int64_t num_samples) const override;
  /// Errors: those of TextReader::read() and make_text_batch().
  std::optional<Batch> next() override { return batches_.next(); }
  bool ready() const override { return batches_.ready(); }
  double wait_seconds() const override { return batches_.wait_seconds(); }

 private:
  Batch make_batch(const EpochPlan& epoch, int64_t batch) const;

  TextColumns columns_;
  LoaderOptions options_;
  TextReader reader_;
  EpochBatches batches_;  // last: its threads use the above
};

}  // namespace lockstep
