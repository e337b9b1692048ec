#pragma once
// The trainer's view of a training task; everything else is the same for all tasks.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/batch.h"
#include "lockstep/train.h"
#include "lockstep/train/config/config.h"

namespace lockstep {
class ProcessGroup;
}

namespace lockstep::inline internal {

struct Confusion;

/// Errors: kInvalidArgument if metric.main_indicator, `name`, is none of `known`.
void check_main_indicator(const std::string& name, std::span<const std::string> known);

/// Whether more of a metric's figure is better: see Metric::lower_is_better().
bool is_higher_better(const Metric& metric, const std::string& figure);

/// Loss and metric. One per rank; not thread-safe.
class Task : public Metric {
 public:
  /// Scalar float32: the mean over the batch, with its graph. `outputs`: of the network in
  /// training. Errors: kInvalidArgument if targets do not fit.
  virtual at::Tensor loss(const Tensors& outputs, const Tensors& targets) = 0;
  /// The same for a batch on the network's device, whose inputs a loss may need, too.
  virtual at::Tensor loss_of(const Batch& batch, const Tensors& outputs) {
    return loss(outputs, batch.targets);
  }

  // What a task keeps of an evaluation beside its sums. Calls come in this order: start, sums() of
  // all batches, join, result().
  virtual void start_evaluation() {}
  /// Collective: joins what the ranks have kept. Not called after an interruption or an error.
  virtual void join_ranks(ProcessGroup&) {}
  /// Of all ranks, until the next evaluation starts; null if it counts none.
  virtual const Confusion* confusion() const { return nullptr; }

  /// Teacher::digest() of the loss's teacher, which each rank reads from its own host; 0: it has
  /// none.
  virtual uint64_t teacher_digest() const { return 0; }

  /// Names that a built-in loss gives to log_value(). Each is a field of metrics.jsonl, written
  /// with every optimizer step: the mean over all ranks. They are the same on every rank, and
  /// differ from the other fields of metrics.jsonl.
  virtual std::vector<std::string> log_names() const { return {}; }
};

}  // namespace lockstep::inline internal
