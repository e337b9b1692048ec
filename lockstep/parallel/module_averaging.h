#pragma once
// The work of DistributedDataParallel on a module: equal values at the start, gradients averaged
// over ranks or virtual ranks, buffers broadcast.

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/distributed_data_parallel.h"
#include "lockstep/parallel/join.h"
#include "lockstep/parallel/local_reduction.h"
#include "lockstep/parallel/module_state.h"
#include "lockstep/parallel/pass_clock.h"
#include "lockstep/parallel/reducer.h"

namespace lockstep::inline internal {

/// The properties of a parameter on which its gradient depends.
struct ParameterKind {
  bool requires_grad = false;
  at::ScalarType type = at::kFloat;
  at::Device device = at::kCPU;
  std::vector<int64_t> sizes;
};

class ModuleAveraging final : public DdpCore {
 public:
  ModuleAveraging(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                  const DdpOptions& options);

  void before_forward() override;
  bool wants_outputs() const override;
  void after_forward(const std::vector<at::Tensor>& outputs) override;
  std::vector<at::Tensor> parameters() const override;
  void zero_grad() override;
  void train(bool on) override;
  bool is_training() const override;
  StepTimings timings() const override;

  std::vector<CommHookState> comm_hook_state() override;
  std::string load_comm_hook_state(const CommHookState& own) override;

  const VirtualRankRange& virtual_ranks() const override { return range_; }
  void enter_virtual_rank(int index) override;
  void leave_virtual_rank() override;
  void abandon_virtual_ranks() override;

  void begin_join(const JoinOptions& options) override;
  void end_join() override;
  void leave_join() override;

 private:
  void check_parameters() const;
  void make_equal(ProcessGroup& group, const DdpOptions& options,
                  const std::vector<NamedTensor>& buffers) const;
  bool synchronises() const;
  void begin_round(const JoinRound& round);

  std::shared_ptr<torch::nn::Module> module_;
  ProcessGroup group_;
  std::vector<NamedTensor> parameters_;
  std::vector<ParameterKind> kinds_;  ///< Of the parameters, when the model was made.
  std::shared_ptr<CommHook> hook_;
  VirtualRankRange range_;
  std::unique_ptr<LocalReduction> local_reduction_;  ///< Null without DdpOptions::virtual_ranks.
  std::unique_ptr<Reducer> reducer_;                 ///< Null in a group of one.
  std::unique_ptr<BufferBroadcast> buffers_;         ///< Null if there is nothing to broadcast.
  std::optional<JoinSession> join_;                  ///< Within join().
  std::optional<int> virtual_rank_;  ///< The entered one of this rank's virtual ranks.
  PassClock::Time forward_begin_;
  double forward_ms_ = 0, buffers_ms_ = 0;
};

}  // namespace lockstep::inline internal
