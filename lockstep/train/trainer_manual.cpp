// An optimizer step by Recipe::training_step, with several optimizers.

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "lockstep/amp/gradients.h"
#include "lockstep/autocast.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/train/optim/optimizer.h"
#include "lockstep/train/task/logged_values.h"
#include "lockstep/train/trainer.h"

namespace lockstep::inline internal {
namespace {

/// During its lifetime the parameters need no gradient; those that did, do again afterwards.
class WithoutGradients {
 public:
  void add(const std::vector<at::Tensor>& parameters) {
    for (const auto& parameter : parameters) {
      if (parameter.requires_grad()) off_.push_back(parameter.requires_grad_(false));
    }
  }
  WithoutGradients() = default;
  WithoutGradients(const WithoutGradients&) = delete;
  WithoutGradients& operator=(const WithoutGradients&) = delete;
  ~WithoutGradients() {
    for (const auto& parameter : off_) parameter.requires_grad_(true);
  }

 private:
  std::vector<at::Tensor> off_;
};

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

class Trainer::ManualStep final : public TrainingStep {
 public:
  ManualStep(Trainer& trainer, const std::vector<MicroBatches>& micro_steps,
             const AccumulationSlot& slot, StepReport& report)
      : trainer_(trainer), micro_steps_(micro_steps), slot_(slot), report_(report) {
    const auto virtual_ranks = static_cast<size_t>(trainer.virtual_ranks().count);
    for (size_t i = 0; i < trainer.trained_.size(); ++i) losses_.emplace_back(virtual_ranks);
    for (size_t i = 0; i < trainer.value_names_.size(); ++i) logged_.emplace_back(virtual_ranks);
  }

  Model& model() override { return trainer_.model(); }
  int64_t number() const override { return trainer_.state_.step; }

  void optimize(const std::string& name, const Loss& loss) override {
    const size_t index = index_of(name);
    TrainedPart& part = *trainer_.trained_[index];
    KeptBuffers before;
    if (drops_overflows(trainer_.config())) before.add(part.ddp.module().ptr()->buffers());
    accumulate(index, loss);
    report_.timings += part.ddp.timings();
    const Outcome outcome = agreed_outcome(index);
    if (outcome == kBadLoss) before.put_back();
    if (outcome == kFinite) {
      update(part);
    } else {
      leave_out(name);
    }
    part.ddp.zero_grad();
    ++phase_;
  }

  bool updated() const { return updated_; }  ///< Any part.

  /// The mean loss of each part, and their sum, by virtual rank; then what was logged.
  Losses losses() const {
    Losses all;
    all.losses.resize(losses_.front().size());
    for (const auto& of_part : losses_) {
      auto& logged = all.logged.emplace_back();
      for (size_t i = 0; i < of_part.size(); ++i) {
        logged.push_back(mean_of(of_part[i]));
        if (!of_part[i].empty()) all.losses[i] += logged.back();
      }
    }
    for (const auto& of_name : logged_) {
      auto& logged = all.logged.emplace_back();
      for (const auto& mean : of_name) logged.push_back(mean.value());
    }
    return all;
  }

 private:
  /// A mean over calls and batches, which count by their samples.
  class WeighedMean {
   public:
    void add(double value, double weight) {
      sum_ += value * weight;
      weight_ += weight;
      ++of_call_;
    }
    /// Behind a call of `batches`: NaN if some of them had a value, and others none.
    void end_call(size_t batches) {
      const auto added = std::exchange(of_call_, 0);
      if (added > 0 && added < batches) sum_ = std::numeric_limits<double>::quiet_NaN();
    }
    /// NaN without values.
    double value() const {
      return weight_ > 0 ? sum_ / weight_ : std::numeric_limits<double>::quiet_NaN();
    }

   private:
    double sum_ = 0;
    double weight_ = 0;
    size_t of_call_ = 0;  ///< Values of the current call.
  };

  /// Values of buffers, to put back.
  class KeptBuffers {
   public:
    void add(const std::vector<at::Tensor>& buffers) {
      for (const auto& buffer : buffers) values_.emplace_back(buffer, buffer.detach().clone());
    }
    void put_back() const {
      const at::NoGradGuard no_grad;
      for (const auto& [buffer, value] : values_) buffer.copy_(value);
    }

   private:
    std::vector<std::pair<at::Tensor, at::Tensor>> values_;
  };

  /// All buffers of the model but the part's own, also those of modules without an optimizer.
  KeptBuffers buffers_beside(const TrainedPart& part) const {
    const auto own = part.ddp.module().ptr()->buffers();
    std::vector<at::Tensor> others = trainer_.model().buffers();
    std::erase_if(others, [&](const at::Tensor& buffer) {
      return std::any_of(own.begin(), own.end(),
                         [&](const auto& each) { return each.is_same(buffer); });
    });
    KeptBuffers kept;
    kept.add(others);
    return kept;
  }

  enum Outcome : int32_t { kFinite, kOverflow, kBadLoss };  ///< Of a call; the worst last.

  size_t index_of(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& part : trainer_.trained_) names.push_back(part->name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("TrainingStep::optimize: the recipe has no optimizer of '{}'{}", name,
                            did_you_mean(name, names)));
  }

  /// The gradients of one part: those of all batches added, and averaged with the last.
  void accumulate(size_t index, const Loss& loss) {
    TrainedPart& part = *trainer_.trained_[index];
    WithoutGradients others_fixed;
    for (const auto& other : trainer_.trained_) {
      if (other.get() != &part) others_fixed.add(other->ddp.parameters());
    }
    const KeptBuffers of_others = buffers_beside(part);
    part.ddp.zero_grad();
    for (auto& of_virtual_rank : losses_[index]) of_virtual_rank.push_back(0);
    for (size_t i = 0; i < micro_steps_.size(); ++i) {
      std::optional<NoSync> hold;
      if (i + 1 < micro_steps_.size()) hold.emplace(part.ddp.no_sync());
      backward(index, loss, i, of_others);
    }
    for (auto& of_name : logged_) {
      for (auto& mean : of_name) mean.end_call(micro_steps_.size());
    }
  }

  void backward(size_t index, const Loss& loss, size_t micro_step, const KeptBuffers& of_others) {
    TrainedPart& part = *trainer_.trained_[index];
    part.ddp.for_each_virtual_rank([&](int virtual_rank) {
      const Batch own = trainer_.begin_virtual_rank(
          micro_steps_[micro_step], {virtual_rank, static_cast<int64_t>(micro_step), phase_});
      std::vector<at::Tensor> logged;
      const auto value = part.ddp.forward([&] {
        const LoggedValues taker(trainer_.value_names_, logged);
        return computed(loss, own);
      });
      if (!value.defined() || value.numel() != 1) {
        throw Error(
            ErrorCode::kInvalidArgument,
            fmt::format("TrainingStep::optimize('{}'): the loss is {}, not one number", part.name,
                        value.defined() ? fmt::format("{} numbers", value.numel())
                                        : std::string("undefined")));
      }
      if (!value.requires_grad()) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("TrainingStep::optimize('{}'): the loss has no gradient: it must "
                                "follow from outputs of that part, without detach() or item()",
                                part.name));
      }
      const double scale = trainer_.loss_scale();
      const double parts = trainer_.parts_of_step(slot_, own);
      const auto of_step = parts == 1 ? value : value / parts;
      (scale == 1 ? of_step : of_step * scale).backward();
      const auto numbers = numbers_on_host(value, logged);
      of_others.put_back();
      const auto row = static_cast<size_t>(virtual_rank - trainer_.virtual_ranks().first);
      losses_[index][row].back() += numbers[0] / parts;
      for (size_t i = 0; i < logged.size(); ++i) {
        if (logged[i].defined()) logged_[i][row].add(numbers[i + 1], 1 / parts);
      }
    });
  }

  /// A loss of 16 bits becomes float32.
  at::Tensor computed(const Loss& loss, const Batch& batch) const {
    if (trainer_.config().system.amp_level == AmpLevel::kO0) return loss(batch);
    const auto device = trainer_.device_.type();
    const AutocastGuard autocast(device, low_precision(device));
    const auto value = loss(batch);
    const bool is_low = value.defined() && value.scalar_type() == low_precision(device);
    return is_low ? value.to(at::kFloat) : value;
  }

  /// Collective. The worst on any rank. Unless such updates are left out, one that is not finite
  /// ends the run on all, before its gradients reach the weights.
  Outcome agreed_outcome(size_t index) {
    const TrainedPart& part = *trainer_.trained_[index];
    double own = 0;
    for (const auto& of_virtual_rank : losses_[index]) own += of_virtual_rank.back();
    int32_t worst = !std::isfinite(own)                 ? kBadLoss
                    : trainer_.gradients_overflow(part) ? kOverflow
                                                        : kFinite;
    const auto begin = std::chrono::steady_clock::now();
    trainer_.group().all_reduce(&worst, 1, DType::kInt32, ReduceOp::kMax).wait();
    trainer_.inner_time_->add(std::chrono::steady_clock::now() - begin);
    if (!drops_overflows(trainer_.config())) {
      if (worst == kBadLoss) trainer_.report_divergence(own, part.name);
      if (worst == kOverflow) trainer_.report_overflow(part.name);
    }
    return static_cast<Outcome>(worst);
  }

  void update(TrainedPart& part) {
    unscale(gradients_of(part.parameters), trainer_.loss_scale());
    for (auto& callback : trainer_.callbacks_) callback->before_update(trainer_);
    const auto& train = trainer_.config().train;
    if (train.clip_grad) clip_gradients(part.parameters, train.clip_norm);
    part.rates.set(report_.lr);
    part.optimizer.step();
    updated_ = true;
  }

  void leave_out(const std::string& name) {
    auto& names = report_.skipped;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  Trainer& trainer_;
  const std::vector<MicroBatches>& micro_steps_;
  AccumulationSlot slot_;
  StepReport& report_;
  uint64_t phase_ = 0;  ///< Calls of optimize() so far.
  bool updated_ = false;
  /// By part, virtual rank and call.
  std::vector<std::vector<std::vector<double>>> losses_;
  /// By name and virtual rank.
  std::vector<std::vector<WeighedMean>> logged_;
};

Trainer::Losses Trainer::step_manually(const std::vector<MicroBatches>& micro_steps,
                                       const AccumulationSlot& slot, StepReport& report) {
  ManualStep step(*this, micro_steps, slot, report);
  parts_.training_step(step);
  report.dropped = !report.skipped.empty() && !step.updated();
  return step.losses();
}

std::vector<std::string> Trainer::log_names() const {
  if (!parts_.training_step) return value_names_;
  std::vector<std::string> names;
  for (const auto& part : trained_) names.push_back(loss_field(part->name));
  names.insert(names.end(), value_names_.begin(), value_names_.end());
  return names;
}

}  // namespace lockstep::inline internal
