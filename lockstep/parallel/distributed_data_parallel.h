#pragma once
// The same module on every rank, each rank with its part of the batch, gradients averaged.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/parallel/ddp_core.h"

namespace lockstep {

/// Trains `net` on all ranks of `group` as one process would train it on all their batches at once:
///
///   auto model = lockstep::DistributedDataParallel(net, group);
///   model.zero_grad();
///   loss_of(model.forward(images), labels).backward();   // gradients are averaged here
///   optimizer.step();                                    // the same on every rank
///
/// Net: a module holder (TORCH_MODULE) or a std::shared_ptr to a class derived from
/// torch::nn::Module. `net` is shared, not copied: build it, move it to its type and device and
/// load its weights before; make the optimizer from parameters() or the net's own, before or after.
/// Do not add parameters or change requires_grad afterwards.
///
/// The loss must be a mean over the rank's samples and every rank must have the same number of
/// them; then the average of the gradients is the gradient of the mean over the global batch.
///
/// Every rank runs the same steps. After an optimizer step weights are equal bit for bit on all
/// ranks and from run to run (the sums of ProcessGroup have one order; libtorch's kernels repeat
/// for a fixed number of threads).
///
/// Gradients are views into the buckets in which they are sent: the next backward() writes over
/// them, also after zero_grad(). Clone what is to be kept longer than a step.
///
/// Collective: constructor, forward() and backward() (unless no_sync), for all ranks of the group.
/// A world of one process communicates nothing and costs nothing.
template <class Net>
class DistributedDataParallel {
 public:
  /// Checks that all ranks have the same parameters and buffers and gives them the values of
  /// rank 0. Errors: kMismatch (names the parameter and both shapes, on every rank),
  /// kInvalidArgument (nothing to train, an option, an element type or device), those of the group.
  DistributedDataParallel(Net net, ProcessGroup group, const DdpOptions& options = {})
      : net_(std::move(net)),
        core_(std::make_unique<DdpCore>(shared_module(net_), std::move(group), options)) {}

  /// net->forward(...). In training, and unless no_sync() holds, rank 0's buffers (running means
  /// of batch-norm) are given to all ranks first, and the next backward() averages gradients.
  /// Errors: those of the group; kInvalidArgument when the last backward() ended early.
  template <class... Args>
  auto forward(Args&&... args) {
    core_->before_forward();
    auto output = net_->forward(std::forward<Args>(args)...);
    core_->after_forward();
    return output;
  }
  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  /// The net's parameters, each once.
  std::vector<at::Tensor> parameters() const { return core_->parameters(); }
  Net& module() { return net_; }
  const Net& module() const { return net_; }

  /// Makes every gradient undefined. Faster than zeroing: the next backward then neither reads nor
  /// adds to old values. An optimizer's own zero_grad() is right too.
  void zero_grad() { core_->zero_grad(); }

  /// While the guard lives, forward() and backward() only accumulate gradients on this rank; the
  /// first backward() of a forward() after it averages the accumulated sum. Both must lie inside.
  /// Guards may nest. All ranks use it for the same steps.
  [[nodiscard]] NoSync no_sync() { return NoSync(*core_); }

  void train(bool on = true) { core_->train(on); }
  void eval() { core_->train(false); }
  bool is_training() const { return core_->is_training(); }

  /// How long the last averaged backward() waited at its end for the network, in milliseconds: the
  /// part of the communication that did not hide behind computation.
  double comm_exposed_ms() const { return core_->comm_exposed_ms(); }

 private:
  template <class T>
  static std::shared_ptr<torch::nn::Module> shared_module(const std::shared_ptr<T>& net) {
    return net;
  }
  template <class Holder>
  static std::shared_ptr<torch::nn::Module> shared_module(const Holder& net) {
    return net.ptr();
  }

  Net net_;
  std::unique_ptr<DdpCore> core_;
};

}  // namespace lockstep
