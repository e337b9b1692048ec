#pragma once
// The same module on every rank, each rank with its part of the batch, gradients averaged.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/ddp_core.h"
#include "lockstep/output_tensors.h"
#include "lockstep/process_group.h"

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
/// Make a new one after adding parameters, or after changing a parameter's requires_grad, type or
/// device: a parameter that thaws or changes so is kInvalidArgument in the next forward().
///
/// The loss must be a mean over the rank's samples and every rank must have the same number of
/// them; then the average of the gradients is the gradient of the mean over the global batch.
///
/// Every rank runs the same steps. After an optimizer step weights are equal bit for bit on all
/// ranks and from run to run (the sums of ProcessGroup have one order; libtorch's kernels repeat
/// for a fixed number of threads).
///
/// A .grad that is there when backward() begins gets the average where it lies, as in PyTorch:
/// views of a flat buffer, handles and views that the program keeps of it see it. This costs two
/// copies a step unless the memory is that of an earlier step and lies in its bucket; fastest is
/// zero_grad(). Where .grad was undefined, gradients are views into the buckets in which they are
/// sent: the next backward() writes over them, also after zero_grad(). Clone what is to be kept
/// longer than a step. Those of a net on another device than the CPU stay there: they are copied to
/// the host, while backward() goes on, and back at its end.
///
/// With DdpOptions::virtual_ranks = V the results no longer depend on the number of ranks either.
/// The global batch has V parts. Each rank works on V / P of them, one after the other; where P
/// does not divide V, the first V mod P ranks have one more than the others:
///
///   auto model = lockstep::DistributedDataParallel(net, group, {.virtual_ranks = 8});
///   model.zero_grad();
///   model.for_each_virtual_rank([&](int virtual_rank) {        // e.g. 2 and 3 on rank 1 of 4
///     lockstep::seed_virtual_rank(seed, step, virtual_rank);   // for dropout
///     loss_of(model.forward(images_of(virtual_rank)), labels_of(virtual_rank)).backward();
///   });
///   optimizer.step();     // the same bits for P = 1, 2, ..., 8
///
/// A virtual rank is to a rank of several what a rank is to the job: batch norm sees one virtual
/// rank at a time, every virtual rank starts from the same running statistics, and those become the
/// mean over all virtual ranks. Gradients and buffers are added in the order of the tree over the
/// virtual ranks and divided by V, once. Part of the contract: the same data for a virtual rank
/// whatever the rank, and the same number of intra-op threads (at::set_num_threads) in the runs
/// that are compared; that the ranks of one run agree on it is checked.
///
/// Cost: memory for log2(V / P) + 1 gradients and sets of buffers of the whole module, or a few
/// more where V / P is no power of two. Communication of all but the smallest part hides behind the
/// last virtual rank's backward. Where V / P is a power of two it is that of a model without
/// virtual ranks; elsewhere a rank sends about 1.5 times as much within a host, and more between
/// hosts.
///
/// Collective: constructor, forward() and backward() (unless no_sync), for all ranks of the group.
/// A world of one process communicates nothing and costs nothing.
template <class Net>
class DistributedDataParallel {
 public:
  /// Checks that all ranks have the same parameters and buffers and gives them the values of
  /// rank 0, which warns where they compute with other kernels. Errors: kMismatch
  /// (names the parameter and both shapes, on every rank), kInvalidArgument (nothing to train, an
  /// option, more ranks than virtual ranks, an element type or device), those of the
  /// group.
  DistributedDataParallel(Net net, ProcessGroup group, const DdpOptions& options = {})
      : net_(std::move(net)),
        core_(DdpCore::make(shared_module(net_), std::move(group), options)) {}

  /// net->forward(...). In training, and unless no_sync() holds, rank 0's buffers (running means
  /// of batch-norm) are given to all ranks first, and the next backward() averages gradients.
  /// Errors: those of the group; kInvalidArgument when the last backward() ended early.
  template <class... Args>
  auto forward(Args&&... args) {
    core_->before_forward();
    auto output = net_->forward(std::forward<Args>(args)...);
    std::vector<at::Tensor> tensors;
    if (core_->wants_outputs()) {
      visit_tensors(output, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
    }
    core_->after_forward(tensors);
    return output;
  }
  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  /// Runs body(virtual rank) for each of this rank's virtual ranks in order; without
  /// DdpOptions::virtual_ranks that is once, with the rank. The body runs one forward() and its
  /// backward(). Gradients are averaged when the last is done; with virtual ranks, what was in
  /// .grad before does not count: see no_sync(). Errors: those of forward() and backward();
  /// kInvalidArgument naming parameters that got no gradient. After an error, which may be one that
  /// the body throws, buffers are as before the step and nothing that was accumulated is left: all
  /// ranks start again from zero_grad(), unless an averaged backward() had begun (see forward()).
  template <class Body>
  void for_each_virtual_rank(Body&& body) {
    const VirtualRankRange& own = core_->virtual_ranks();
    try {
      for (int index = 0; index < own.count; ++index) {
        core_->enter_virtual_rank(index);
        body(own.first + index);
        core_->leave_virtual_rank();
      }
    } catch (...) {
      core_->abandon_virtual_ranks();
      throw;
    }
  }

  /// This rank's virtual ranks.
  const VirtualRankRange& virtual_ranks() const { return core_->virtual_ranks(); }

  /// The net's parameters, each once.
  std::vector<at::Tensor> parameters() const { return core_->parameters(); }
  Net& module() { return net_; }
  const Net& module() const { return net_; }

  /// Makes every gradient undefined. Faster than zeroing: the next backward then neither reads nor
  /// adds to old values. An optimizer's own zero_grad() is right too. A program whose gradients lie
  /// in its own flat buffer zeroes that instead.
  void zero_grad() { core_->zero_grad(); }

  /// While the guard lives, forward() and backward() only accumulate gradients on this rank; the
  /// first backward() of a forward() after it averages the accumulated sum. Both must lie inside.
  /// Guards may nest. All ranks use it for the same steps. With virtual ranks it holds for a whole
  /// for_each_virtual_rank(): each virtual rank's gradients and buffers are put aside and come back
  /// when it is that virtual rank's turn again; .grad is undefined in between.
  ///
  /// A batch of k micro-batches, one average in all (what no_sync steps accumulated counts):
  ///   { auto hold = model.no_sync();
  ///     for (each but the last) (loss(model.forward(...)) / k).backward(); }
  ///   (loss(model.forward(last)) / k).backward();
  [[nodiscard]] NoSync no_sync() { return NoSync(*core_); }

  /// Runs body(), a loop over this rank's batches, when ranks may have different numbers of them:
  ///
  ///   model.join([&] {
  ///     for (const auto& batch : mine) { ...model.forward...backward...step... }
  ///   });
  ///
  /// A rank whose body has ended takes part in the others' steps with gradients of zero until all
  /// have ended; a line in the log says which rank ended first. Then every rank gets parameters and
  /// buffers of the last one (the lowest of the last ones); the optimizer's state does so only by
  /// JoinOptions::on_shadow_step. Within the body every averaging forward() is followed by its
  /// backward(), and no other collectives run on this group (nor SyncBatchNorm).
  /// Cost: 16 bytes a rank and step.
  /// Errors: what the body throws (the others then wait in vain for this rank); kMismatch with
  /// JoinOptions::throw_when_uneven; kInvalidArgument with virtual ranks, with synchronised
  /// batch norm in training mode (it waits for every rank's batch), or within another join().
  template <class Body>
  void join(Body&& body, const JoinOptions& options = {}) {
    core_->begin_join(options);
    try {
      body();
      core_->end_join();
    } catch (...) {
      core_->leave_join();
      throw;
    }
  }

  /// What a comm_hook remembers between steps (int8, powersgd: what was not sent yet), to be saved
  /// with weights and optimizer: with it a run goes on from a checkpoint with the bits of one that
  /// was not interrupted. Collective, between steps. On rank 0: one for each rank, or none when
  /// there is nothing to remember (no hook, one without a memory, no averaged step yet, one
  /// process); on the others none. Memory there: as much as all ranks' together.
  std::vector<CommHookState> comm_hook_state() { return core_->comm_hook_state(); }
  /// Goes on from a saved one, this rank's `own`; an empty one on all ranks: nothing. Collective,
  /// before the first step. Returns why it cannot be gone on from, on some rank at least (another
  /// hook, number of ranks or net), and then begins without; or an empty text.
  std::string load_comm_hook_state(const CommHookState& own) {
    return core_->load_comm_hook_state(own);
  }

  void train(bool on = true) { core_->train(on); }
  void eval() { core_->train(false); }
  bool is_training() const { return core_->is_training(); }

  /// How long the last averaged backward() waited at its end for the network, in milliseconds: the
  /// part of the communication that did not hide behind computation.
  double comm_exposed_ms() const { return core_->timings().comm_exposed; }
  /// Where the time of the last averaged step went; all 0 in a world of one process.
  StepTimings timings() const { return core_->timings(); }

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
