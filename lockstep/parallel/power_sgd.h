#pragma once
// Sends gradients of weight matrices as products of two thin matrices.

#include <cstdint>
#include <memory>

#include "lockstep/comm_hook.h"

namespace lockstep::inline internal {

struct PowerSgdOptions {
  int64_t rank = 1;  ///< Columns of the thin matrices: more are more exact, and cost more bytes.
  int64_t start_step = 1000;  ///< Number of first steps that are averaged exactly; at least 1.
  double min_saving = 2;      ///< A matrix is sent thin if that takes this many times fewer bytes.
  uint64_t seed = 0;          ///< For the first guess; the same on every rank.

  /// Errors: kInvalidArgument, which names the field and its value.
  void validate() const;
};

/// The hook "powersgd" of make_comm_hook() with the default options.
///
/// A gradient of shape (n, ...) is taken as a matrix M of n x m. It is sent as P (n x r) and Q (m x
/// r) with M about P Q^T. The condition is (n + m) r min_saving < n m. Others are sent unchanged.
/// The difference between this rank's M and the product is added to its next gradient (error
/// feedback), and the next step starts from Q. Two reductions one after the other, the second at
/// the end of backward. All ranks compute P Q^T from the same bits, so they agree bit for bit on
/// hosts with the same kind of processor. On others libtorch's kernels may round differently.
/// Gradients other than float32 or float64 are sent unchanged. If a bucket's average is not finite,
/// its state is dropped: the next step is like the first.
/// Errors: kInvalidArgument, see PowerSgdOptions.
/// Source: Vogels, Karimireddy & Jaggi, "PowerSGD", NeurIPS 2019, and
/// torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py of PyTorch.
std::shared_ptr<CommHook> make_power_sgd_hook(const PowerSgdOptions& options = {});

}  // namespace lockstep::inline internal
