#pragma once
// The part of DistributedDataParallel that does not depend on the module's type. Programs use it
// through distributed_data_parallel.h.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ddp_options.h"
#include "lockstep/process_group.h"
#include "lockstep/step_timings.h"
#include "lockstep/virtual_ranks.h"

namespace torch::nn {
class Module;
}

namespace lockstep {

/// DistributedDataParallel documents the contract of each function.
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
  explicit NoSync(DdpCore& core) : core_(&core) { ++core_->no_sync_depth_; }
  NoSync(NoSync&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  ~NoSync() {
    if (core_ != nullptr) --core_->no_sync_depth_;
  }
  NoSync& operator=(NoSync&&) = delete;

 private:
  DdpCore* core_;  ///< Null once moved from.
};

}  // namespace lockstep
