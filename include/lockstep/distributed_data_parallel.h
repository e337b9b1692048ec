#pragma once
// DistributedDataParallel trains one module on many ranks: each rank takes a part of the batch, and
// gradients are averaged.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/ddp_options.h"
#include "lockstep/process_group.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

// Virtual ranks: the parts of a global batch, in a number that does not depend on the number of
// ranks. They are the leaves of the one tree of additions (see ProcessGroup). So a run with V
// virtual ranks has the same bits on every number of ranks up to V.

/// Virtual ranks [first, first + count) of `total`: those of one rank.
struct VirtualRankRange {
  int first = 0;
  int count = 1;
  int total = 1;
  bool operator==(const VirtualRankRange&) const = default;
};

/// The virtual ranks of `rank` of `size`: consecutive ones, in the order of the ranks. The first V
/// mod P ranks have one more than the others. Errors: kInvalidArgument for fewer than one virtual
/// rank, for more ranks than virtual ranks, and for a rank outside [0, size).
VirtualRankRange deal_virtual_ranks(int virtual_ranks, int rank, int size);

/// Seeds libtorch's CPU generator for one virtual rank's forward of one step. So dropout depends on
/// (seed, step, virtual rank) and neither on the rank nor on earlier draws. Cost: some
/// microseconds. Threads: any; those that draw from the generator see the new seed.
void seed_virtual_rank(uint64_t seed, int64_t step, int virtual_rank);

// Finds the tensors in the result of a module's forward().

/// Calls visit(tensor) for every tensor in `value`, at any depth. `value` is a tensor, an optional,
/// a pair or tuple, or a container (also of pairs, so a map). Ignores other types.
template <class T, class Visit>
void visit_tensors(const T& value, const Visit& visit) {
  if constexpr (std::is_convertible_v<const T&, const at::Tensor&>) {
    visit(static_cast<const at::Tensor&>(value));
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](const auto&... part) { (visit_tensors(part, visit), ...); }, value);
  } else if constexpr (requires { value.has_value(), *value; }) {
    if (value.has_value()) visit_tensors(*value, visit);
  } else if constexpr (requires { value.begin() != value.end(), *value.begin(); }) {
    for (const auto& part : value) visit_tensors(part, visit);
  }
}

/// The part of DistributedDataParallel that does not depend on the module's type. That class has
/// the contract of each function.
class DdpCore {
 public:
  static std::unique_ptr<DdpCore> make(std::shared_ptr<torch::nn::Module> module,
                                       ProcessGroup group, const DdpOptions& options);
  virtual ~DdpCore() = default;
  DdpCore(const DdpCore&) = delete;
  DdpCore& operator=(const DdpCore&) = delete;

  virtual void before_forward() = 0;
  /// Whether after_forward() uses its argument.
  virtual bool wants_outputs() const = 0;
  virtual void after_forward(const std::vector<at::Tensor>& outputs) = 0;
  virtual std::vector<at::Tensor> parameters() const = 0;
  virtual void zero_grad() = 0;
  virtual void train(bool on) = 0;
  virtual bool is_training() const = 0;
  virtual StepTimings timings() const = 0;

  virtual std::vector<CommHookState> comm_hook_state() = 0;
  virtual std::string load_comm_hook_state(const CommHookState& own) = 0;

  virtual const VirtualRankRange& virtual_ranks() const = 0;
  virtual void enter_virtual_rank(int index) = 0;
  virtual void leave_virtual_rank() = 0;
  /// The step failed in a virtual rank.
  virtual void abandon_virtual_ranks() = 0;

  virtual void begin_join(const JoinOptions& options) = 0;
  virtual void end_join() = 0;
  virtual void leave_join() = 0;

 protected:
  DdpCore() = default;
  int no_sync_depth_ = 0;
  friend class NoSync;
};

/// Suspends the averaging of gradients; see DistributedDataParallel::no_sync().
class NoSync {
 public:
  NoSync(NoSync&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  ~NoSync() {
    if (core_ != nullptr) --core_->no_sync_depth_;
  }
  NoSync& operator=(NoSync&&) = delete;

 private:
  template <class Net>
  friend class DistributedDataParallel;
  explicit NoSync(DdpCore& core) : core_(&core) { ++core_->no_sync_depth_; }

  DdpCore* core_;  ///< Null once moved from.
};

/// Trains `net` on all ranks of `group` as one process would on all their batches together.
///
/// Use:
///   auto model = lockstep::DistributedDataParallel(net, group);
///   model.zero_grad();
///   loss_of(model.forward(images), labels).backward();   // gradients are averaged here
///   optimizer.step();                                    // the same on every rank
///
/// Net: a module holder (TORCH_MODULE) or a std::shared_ptr to a class derived from
/// torch::nn::Module. `net` is shared, not copied. Build it, load its weights and move it to its
/// type and device first. Make the optimizer from parameters() or the net's own, before or after.
/// Make a new model after adding parameters, or after changing a parameter's requires_grad, type,
/// device or sizes. A parameter that becomes trainable or changes so is kInvalidArgument in the
/// next forward().
///
/// The loss must be a mean over the rank's samples, and every rank must have the same number of
/// samples. Then the average of the gradients is the gradient of the mean over the global batch.
///
/// Every rank runs the same steps. After an optimizer step weights are equal bit for bit on all
/// ranks. They are equal from run to run, too, where the sums of ProcessGroup have one order (see
/// there). libtorch's kernels repeat for a fixed number of threads.
///
/// A .grad that is defined when backward() begins gets the average in place, as in PyTorch. Views
/// of a flat buffer and other handles of the program see it. This costs two copies a step unless
/// .grad is the memory of an earlier step and lies in its bucket; zero_grad() is fastest. Where
/// .grad was undefined, gradients become views into the buckets that carry them. The next
/// backward() overwrites these, also after zero_grad(); clone a gradient to keep it longer than a
/// step. Gradients on the group's device() are averaged there. Those on another device than the CPU
/// stay on it: during backward() they are copied to the host, and back at its end.
///
/// Only backward() averages: torch::autograd::grad() returns this rank's own gradients. A
/// backward() with create_graph, whose gradients have a graph, is kInvalidArgument.
///
/// With DdpOptions::virtual_ranks = V the results no longer depend on the number of ranks P either.
/// The global batch has V parts. Each rank works on V / P of them, one after the other. If P does
/// not divide V, the first V mod P ranks have one more than the others.
///
/// Use:
///   auto model = lockstep::DistributedDataParallel(net, group, {.virtual_ranks = 8});
///   model.zero_grad();
///   model.for_each_virtual_rank([&](int virtual_rank) {        // e.g. 2 and 3 on rank 1 of 4
///     lockstep::seed_virtual_rank(seed, step, virtual_rank);   // for dropout
///     loss_of(model.forward(images_of(virtual_rank)), labels_of(virtual_rank)).backward();
///   });
///   optimizer.step();     // the same bits for P = 1, 2, ..., 8
///
/// Batch norm sees one virtual rank at a time. Every virtual rank starts from the same running
/// statistics, which become the mean over all virtual ranks. Gradients and buffers are added in the
/// order of the tree over the virtual ranks and divided by V, once. The caller gives a virtual rank
/// the same data on any rank, and sets the same number of intra-op threads
/// (at::set_num_threads) in the compared runs. The constructor checks that the ranks of one run
/// agree on this number.
///
/// Cost: memory for log2(V / P) + 1 gradients and sets of buffers of the whole module. It is a few
/// more unless V / P is a power of two. All communication but the smallest part hides behind the
/// last virtual rank's backward. If V / P is a power of two, its amount is that of a model without
/// virtual ranks. Otherwise a rank sends about 1.5 times as much within a host, and more between
/// hosts.
///
/// Collective over all ranks of the group: constructor, forward() and backward() (except within
/// no_sync). A forward() without gradients (torch::NoGradGuard) is the net's own. A world of one
/// process communicates nothing and costs nothing.
///
/// Threads: one thread at a time calls a model. From forward() to the end of its backward() no
/// other thread runs collectives of the group: give it a group of its own. Several models take
/// turns in one thread, or have a group each.
template <class Net>
class DistributedDataParallel {
 public:
  /// Checks that all ranks have the same parameters and buffers, and copies rank 0's values to all.
  /// Rank 0 warns if ranks compute with different kernels. Errors: kMismatch naming the parameter
  /// and both shapes, on every rank. kInvalidArgument for no parameter to train, an option, more
  /// ranks than virtual ranks, an element type or device. With several ranks also kInvalidArgument
  /// naming a parameter or buffer that is sparse, or has elements that share memory, as after
  /// expand(). Also those of the group, and kUnavailable if there is no shared memory.
  DistributedDataParallel(Net net, ProcessGroup group, const DdpOptions& options = {})
      : net_(std::move(net)),
        core_(DdpCore::make(shared_module(net_), std::move(group), options)) {}

  /// Returns net->forward(...). Outside no_sync() the next backward() averages gradients, and in
  /// training forward() first copies rank 0's buffers (running means of batch norm) to all ranks.
  /// Errors: those of the group; kMismatch if the last backward() lacked gradients, but not on all
  /// ranks. kInvalidArgument if the last backward() ended early, and, with virtual ranks, outside
  /// for_each_virtual_rank().
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
  /// DdpOptions::virtual_ranks once, with the rank. The body runs one forward() and its backward().
  /// Gradients are averaged when the last is done; with virtual ranks, earlier content of .grad
  /// does not count (see no_sync()). Errors: those of forward() and backward(); kInvalidArgument
  /// naming parameters that got no gradient. After an error, also one that the body throws, buffers
  /// are as before the step and the accumulated gradients are dropped. All ranks then start again
  /// from zero_grad(), unless an averaged backward() had begun (see forward()).
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

  /// Makes every gradient undefined. This is faster than zeroing: the next backward() neither reads
  /// nor adds to old values. An optimizer's own zero_grad() is right too. A program with gradients
  /// in its own flat buffer zeroes that buffer instead.
  void zero_grad() { core_->zero_grad(); }

  /// While the guard lives, forward() and backward() only accumulate gradients on this rank. Both
  /// calls of a pass must lie inside. The first forward() and backward() after the guard average
  /// the accumulated sum. Guards may nest. All ranks use it for the same steps. With virtual ranks
  /// the guard spans a whole for_each_virtual_rank(). Each virtual rank's gradients and buffers are
  /// put aside and come back at its next turn; .grad is undefined in between.
  ///
  /// A batch of k micro-batches with one average, over the gradients of all k:
  ///   { auto hold = model.no_sync();
  ///     for (each but the last) (loss(model.forward(...)) / k).backward(); }
  ///   (loss(model.forward(last)) / k).backward();
  [[nodiscard]] NoSync no_sync() { return NoSync(*core_); }

  /// Runs body(), a loop over this rank's batches, if ranks may have different numbers of batches:
  ///
  ///   model.join([&] {
  ///     for (const auto& batch : mine) { ...model.forward...backward...step... }
  ///   });
  ///
  /// A rank whose body has ended takes part in the others' steps with gradients of zero until all
  /// have ended. A log line names the rank that ended first. Then every rank gets the parameters
  /// and buffers of the last one (the lowest of the last ones). JoinOptions::on_shadow_step alone
  /// keeps the optimizer's state equal too. Within the body a backward() follows every averaging
  /// forward(), and no other collectives run on this group (nor SyncBatchNorm).
  /// Cost: 16 bytes per rank and step.
  /// Errors: exceptions of the body (the others then wait in vain for this rank); kMismatch with
  /// JoinOptions::throw_when_uneven. kInvalidArgument with virtual ranks, within another join(), or
  /// with synchronised batch norm in training mode. The latter waits for every rank's batch.
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

  /// The comm_hook's state between steps (int8, powersgd: the part not sent yet), to save with
  /// weights and optimizer. A run that resumes with it is bit-identical to an uninterrupted one.
  /// Collective, between steps. Rank 0 gets one state per rank, the others none. Rank 0 gets none
  /// either if there is no state: no hook, a hook without state, no averaged step yet, or one
  /// process. Memory on rank 0: that of all ranks' states together.
  std::vector<CommHookState> comm_hook_state() { return core_->comm_hook_state(); }
  /// Continues from this rank's saved state `own`; an empty one on all ranks has no effect.
  /// Collective, before the first step. If some rank cannot use its state (another hook, number of
  /// ranks or net), all begin without, and the result is the reason. Otherwise the result is empty.
  std::string load_comm_hook_state(const CommHookState& own) {
    return core_->load_comm_hook_state(own);
  }

  void train(bool on = true) { core_->train(on); }
  void eval() { core_->train(false); }
  bool is_training() const { return core_->is_training(); }

  /// How long the last averaged backward() waited at its end for the network, in milliseconds: the
  /// part of the communication that computation did not hide.
  double comm_exposed_ms() const { return core_->timings().comm_exposed; }
  /// The parts of the last averaged step's time; all 0 in a world of one process.
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
