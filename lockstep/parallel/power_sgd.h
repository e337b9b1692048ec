#pragma once
// Gradients of weight matrices sent as products of two thin matrices.

#include <cstdint>
#include <memory>

#include "lockstep/comm_hook.h"

namespace lockstep {

struct PowerSgdOptions {
  int64_t rank = 1;  ///< Columns of the thin matrices: more are more exact, and more bytes.
  int64_t start_step = 1000;  ///< Steps before it that are averaged exactly; at least 1.
  double min_saving = 2;      ///< A matrix is sent thin when that takes this many times less.
  uint64_t seed = 0;          ///< Of the first guess; the same on every rank.

  /// Errors: kInvalidArgument naming the field and its value.
  void validate() const;
};

/// The hook "powersgd" of make_comm_hook() with the default options.
///
/// A gradient of shape (n, ...), seen as a matrix M of n x m, travels as P (n x r) and Q (m x r)
/// with M about P Q^T, where (n + m) r min_saving < n m; the others travel as they are. What the
/// product lacks of this rank's M is added to its next gradient (error feedback), and Q is where
/// the next step starts from. Two reductions one after the other, the second at the end of
/// backward. All ranks compute P Q^T from the same bits, so they agree bit for bit on hosts with
/// the same kind of processor; on others libtorch's kernels may round in other ways.
/// Gradients that are not float32 or float64 travel as they are. Where a bucket's average is not
/// finite, what it remembers is dropped: the next step is as the first.
/// Errors: kInvalidArgument, see PowerSgdOptions.
/// Source: Vogels, Karimireddy & Jaggi, "PowerSGD", NeurIPS 2019, and torch/distributed/algorithms/
/// ddp_comm_hooks/powerSGD_hook.py of PyTorch.
std::shared_ptr<CommHook> make_power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace lockstep
