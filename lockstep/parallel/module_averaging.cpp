#include "lockstep/parallel/module_averaging.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <utility>

#include "lockstep/error.h"
#include "lockstep/parallel/kernel_choices.h"
#include "lockstep/parallel/sync_batch_norm_layers.h"

namespace lockstep::inline internal {
namespace {

std::vector<NamedTensor> trainable(const std::vector<NamedTensor>& parameters) {
  std::vector<NamedTensor> list;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.requires_grad()) list.push_back(parameter);
  }
  return list;
}

std::vector<ParameterKind> kinds_of(const std::vector<NamedTensor>& parameters) {
  std::vector<ParameterKind> kinds;
  for (const auto& [name, tensor] : parameters) {
    kinds.push_back(
        {tensor.requires_grad(), tensor.scalar_type(), tensor.device(), tensor.sizes().vec()});
  }
  return kinds;
}

/// What happened to a parameter that was of kind `was`; null if nothing that matters.
const char* change_since(const ParameterKind& was, const at::Tensor& parameter) {
  if (parameter.requires_grad() && !was.requires_grad) return "has come to require a gradient";
  if (parameter.scalar_type() != was.type || parameter.device() != was.device) {
    return "has changed its type or device";
  }
  return parameter.sizes() == at::IntArrayRef(was.sizes) ? nullptr : "has changed its sizes";
}

/// Equal bits for any number of ranks are guaranteed for the CPU's arithmetic and generator only.
void require_cpu(const std::vector<NamedTensor>& parameters) {
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.is_cpu()) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("virtual ranks need a module on the cpu; parameter '{}' is on {}",
                            parameter.name, parameter.tensor.device().str()));
  }
}

ReducerOptions reducer_options(const DdpOptions& options) {
  const auto cap_bytes = static_cast<int64_t>(options.bucket_cap_mb * (1 << 20));
  GraphUse graph = GraphUse::kAll;
  if (options.find_unused_parameters) graph = GraphUse::kFindUnused;
  if (options.static_graph) graph = GraphUse::kStatic;
  return {.bucket_cap_bytes = std::max<int64_t>(cap_bytes, 1),
          .graph = graph,
          .hook = options.comm_hook,
          .measure_wait = options.measure_wait};
}

/// Options that must be the same on all ranks.
std::string describe(const DdpOptions& options) {
  return fmt::format(
      "options bucket_cap_mb {}, broadcast_buffers {}, find_unused_parameters {}, static_graph {}, "
      "measure_wait {}",
      options.bucket_cap_mb, options.broadcast_buffers, options.find_unused_parameters,
      options.static_graph, options.measure_wait);
}

}  // namespace
}  // namespace lockstep::inline internal

namespace lockstep {

void DdpOptions::validate() const {
  if (!(bucket_cap_mb > 0 && bucket_cap_mb <= 1 << 20)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("bucket_cap_mb is {}; it must be in (0, 1048576], in MiB", bucket_cap_mb));
  }
  if (virtual_ranks < 0) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("virtual_ranks is {}; it must be 0 (one a rank) or more", virtual_ranks));
  }
  if (virtual_ranks > 0 && !broadcast_buffers) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "broadcast_buffers is false: with virtual ranks, buffers are always averaged over them");
  }
  if (find_unused_parameters && static_graph) {
    throw Error(ErrorCode::kInvalidArgument,
                "find_unused_parameters and static_graph are both on; the first is for graphs that "
                "change from step to step, the second for such that do not");
  }
  if (virtual_ranks > 0 && (find_unused_parameters || static_graph || comm_hook)) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "virtual_ranks is {} and {} is on; with virtual ranks every parameter takes part and "
            "gradients are summed in one order, exactly",
            virtual_ranks,
            comm_hook      ? "a comm_hook"
            : static_graph ? "static_graph"
                           : "find_unused_parameters"));
  }
}

std::unique_ptr<DdpCore> DdpCore::make(std::shared_ptr<torch::nn::Module> module,
                                       ProcessGroup group, const DdpOptions& options) {
  return std::make_unique<ModuleAveraging>(std::move(module), std::move(group), options);
}

}  // namespace lockstep

namespace lockstep::inline internal {

ModuleAveraging::ModuleAveraging(std::shared_ptr<torch::nn::Module> module, ProcessGroup group,
                                 const DdpOptions& options)
    : module_(std::move(module)),
      group_(group),
      parameters_(parameters_of(*module_)),
      hook_(options.comm_hook) {
  options.validate();
  const auto to_reduce = trainable(parameters_);
  const bool is_virtual = options.virtual_ranks > 0;
  kinds_ = kinds_of(parameters_);
  if (is_virtual) require_cpu(to_reduce);
  range_ = deal_virtual_ranks(is_virtual ? options.virtual_ranks : group.size(), group.rank(),
                              group.size());
  const auto buffers = buffers_of(*module_);
  if (group.size() > 1) make_equal(group, options, buffers);
  if (to_reduce.empty()) {  // now, because all ranks must learn of one that differs
    throw Error(ErrorCode::kInvalidArgument,
                "data parallel training needs a module with at least one parameter that requires "
                "a gradient");
  }
  if (is_virtual) {
    local_reduction_ = std::make_unique<LocalReduction>(group, range_, to_reduce, buffers);
  }
  if (group.size() == 1) return;
  reducer_ =
      std::make_unique<Reducer>(group, to_reduce, reducer_options(options), local_reduction_.get());
  if (options.broadcast_buffers && !is_virtual && !buffers.empty()) {
    buffers_ = std::make_unique<BufferBroadcast>(group, buffers);
  }
}

void ModuleAveraging::make_equal(ProcessGroup& group, const DdpOptions& options,
                                 const std::vector<NamedTensor>& buffers) const {
  const auto& hook = options.comm_hook;
  std::vector<std::string> descriptions = {describe(options),
                                           "comm_hook " + (hook ? hook->describe() : "none")};
  if (options.virtual_ranks > 0) {
    descriptions.push_back(fmt::format("{} virtual ranks, intra-op threads {}",
                                       options.virtual_ranks, at::get_num_threads()));
  }
  for (const auto& parameter : parameters_) {
    const char* what = parameter.tensor.requires_grad() ? "parameter" : "frozen parameter";
    descriptions.push_back(describe(what, parameter));
  }
  for (const auto& buffer : buffers) descriptions.push_back(describe("buffer", buffer));
  check_same_on_all_ranks(group, descriptions);
  for (const auto* tensors : {&parameters_, &buffers}) check_copyable(*tensors);
  compare_kernel_choices(group);
  broadcast_values(group, parameters_);
  broadcast_values(group, buffers);
}

/// True if the next backward is averaged over the ranks.
bool ModuleAveraging::synchronises() const {
  return no_sync_depth_ == 0 && (!local_reduction_ || *virtual_rank_ + 1 == range_.count);
}

/// Hooks and sums belong to the original parameters. The gradient of a parameter changed since
/// would stay on this rank, or be the sum over its virtual ranks.
void ModuleAveraging::check_parameters() const {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const auto& [name, tensor] = parameters_[i];
    const char* const change = change_since(kinds_[i], tensor);
    if (change == nullptr) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("parameter '{}' {} since the data parallel model was made, and would "
                            "not be averaged: make a new DistributedDataParallel of the module",
                            name, change));
  }
}

void ModuleAveraging::before_forward() {
  forward_begin_ = std::chrono::steady_clock::now();
  if (!c10::GradMode::is_enabled()) return;
  if (local_reduction_ && !virtual_rank_) {
    throw Error(ErrorCode::kInvalidArgument,
                "forward() of a data parallel model with virtual ranks belongs into "
                "for_each_virtual_rank()");
  }
  if (reducer_ || local_reduction_) check_parameters();
  if (!reducer_) return;
  if (!synchronises()) {
    reducer_->begin_forward(false);
  } else if (join_) {
    begin_round(join_->next({.active = 1, .training = module_->is_training()}));
  } else {
    begin_round({.leader = 0, .training = module_->is_training()});
  }
}

/// Begins an averaged step; the leader's order of gradients and its buffers count.
void ModuleAveraging::begin_round(const JoinRound& round) {
  if (join_) reducer_->set_scale(join_->scale(round));
  reducer_->begin_forward(true, round.leader);
  if (!buffers_ || !round.training) return;
  const auto begin = std::chrono::steady_clock::now();
  buffers_->run(round.leader);
  buffers_ms_ = milliseconds(std::chrono::steady_clock::now() - begin);
}

bool ModuleAveraging::wants_outputs() const {
  return reducer_ && c10::GradMode::is_enabled() && (!local_reduction_ || synchronises());
}

void ModuleAveraging::after_forward(const std::vector<at::Tensor>& outputs) {
  if (!reducer_ || !c10::GradMode::is_enabled()) return;
  // Gradients that were set aside would hold the memory that the last virtual rank needs.
  if (!local_reduction_ || synchronises()) reducer_->end_forward(outputs);
  if (synchronises()) {
    forward_ms_ = milliseconds(std::chrono::steady_clock::now() - forward_begin_);
  }
}

void ModuleAveraging::begin_join(const JoinOptions& options) {
  const char* const why = local_reduction_
                              ? "has virtual ranks, each with equally many batches: run "
                                "for_each_virtual_rank() without join()"
                          : join_ ? "is within join() already"
                          : has_sync_batchnorm(*module_)
                              ? "has synchronised batch norm, which waits for every rank's batch"
                              : nullptr;
  if (why != nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("join() of a data parallel model that {}", why));
  }
  join_.emplace(group_, options);
}

void ModuleAveraging::end_join() {
  while (reducer_) {
    const JoinRound round = join_->next({});
    if (round.leader < 0) break;
    begin_round(round);
    reducer_->shadow_pass();
    if (join_->options().on_shadow_step) join_->options().on_shadow_step();
  }
  const int leader = join_->last_leader();
  leave_join();
  if (!reducer_) return;
  broadcast_values(group_, parameters_, leader);
  broadcast_values(group_, buffers_of(*module_), leader);
}

void ModuleAveraging::leave_join() {
  join_.reset();
  if (reducer_) reducer_->set_scale(1);
}

void ModuleAveraging::enter_virtual_rank(int index) {
  virtual_rank_ = index;
  if (local_reduction_) local_reduction_->enter(index);
}

void ModuleAveraging::leave_virtual_rank() {
  if (local_reduction_ && no_sync_depth_ > 0) {
    local_reduction_->keep(*virtual_rank_);
  } else if (local_reduction_ && synchronises()) {
    local_reduction_->finish(!reducer_, module_->is_training());
  } else if (local_reduction_) {
    local_reduction_->add(*virtual_rank_);
  }
  virtual_rank_.reset();
}

void ModuleAveraging::abandon_virtual_ranks() {
  virtual_rank_.reset();
  if (local_reduction_) local_reduction_->reset();
}

std::vector<at::Tensor> ModuleAveraging::parameters() const {
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

void ModuleAveraging::zero_grad() {
  // Within a virtual rank: its own gradients only.
  if (local_reduction_ && !virtual_rank_) local_reduction_->reset();
  for (auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

void ModuleAveraging::train(bool on) {
  module_->train(on);
}

bool ModuleAveraging::is_training() const {
  return module_->is_training();
}

StepTimings ModuleAveraging::timings() const {
  if (!reducer_) return {};
  StepTimings timings = reducer_->timings();
  timings.forward = forward_ms_;
  timings.buffers = buffers_ms_;
  if (local_reduction_) timings.buffer_average = local_reduction_->averaging_ms();
  return timings;
}

std::vector<CommHookState> ModuleAveraging::comm_hook_state() {
  if (!reducer_ || !hook_ || !hook_->state()) return {};
  const BucketNames buckets = reducer_->settled_buckets();
  if (buckets.empty()) return {};
  std::vector<CommHookState> states;
  for (HookState& state : gather_states(group_, hook_->state().value())) {
    states.push_back({{{"hook", hook_->describe()},
                       {"ranks", std::to_string(group_.size())},
                       {"buckets", to_text(buckets)}},
                      std::move(state)});
  }
  return states;
}

std::string ModuleAveraging::load_comm_hook_state(const CommHookState& own) {
  if (!reducer_ || !hook_) {
    return own.about.empty() ? "" : misfit(own, group_.size(), hook_ ? hook_->describe() : "none");
  }
  const std::string why = misfit(own, group_.size(), hook_->describe());
  if (!all_fit(group_, why.empty())) {
    if (own.about.empty()) return "";
    return why.empty() ? "another rank has none that fits" : why;
  }
  if (!reducer_->start_with(bucket_names_from_text(own.about.at("buckets")))) {
    return "it is that of other parameters";
  }
  hook_->load_state(own.tensors);
  return "";
}

}  // namespace lockstep::inline internal
