#pragma once
// Optimizers that libtorch lacks, or implements differently from MindSpore: Lion, NAdam, Adan,
// RMSProp, LAMB.

#include <string>
#include <vector>

#include "lockstep/checkpoint/named_state.h"

namespace lockstep::inline internal {

/// Options of all rules; each reads its own. OptimizerConfig has the defaults.
struct RuleOptions : torch::optim::OptimizerCloneableOptions<RuleOptions> {
  double lr = 0;
  double weight_decay = 0;
  double beta1 = 0;
  double beta2 = 0;
  double beta3 = 0;
  double eps = 0;
  double momentum = 0;
  double decay = 0;           ///< RMSProp: of the mean square.
  bool centered = false;      ///< RMSProp: the mean square about the mean.
  double schedule_decay = 0;  ///< NAdam.
  double get_lr() const override { return lr; }
  void set_lr(const double value) override { lr = value; }
};

/// One update of one parameter p with gradient g, step number t from 1, learning rate lr, weight
/// decay wd. Slots start as zeros (RMSProp's square as ones). Norms are of p alone, and products
/// are element by element.
///
/// lion (momentum m): p -= lr * (sign(beta1 * m + (1 - beta1) * g) + wd * p);
///   m = beta2 * m + (1 - beta2) * g. Source: Chen et al., arXiv:2302.06675.
/// nadam (exp_avg m, exp_avg_sq v): g += wd * p; m, v as Adam's;
///   mu(t) = beta1 * (1 - 0.96^(t * schedule_decay) / 2), M(t) = mu(1) * .. * mu(t);
///   p -= lr * (mu(t+1) * m / (1 - M(t+1)) + (1 - mu(t)) * g / (1 - M(t)))
///        / (sqrt(v / (1 - beta2^t)) + eps). Source: Dozat 2016, as torch.optim.NAdam.
/// adan (exp_avg m, exp_avg_diff v, exp_avg_sq n, previous): d = g - previous gradient, 0 at first;
///   m += beta1 * (g - m); v += beta2 * (d - v); n += beta3 * ((g + (1 - beta2) * d)^2 - n);
///   r = lr / (sqrt(n) + eps); p = (p - r * (m + (1 - beta2) * v)) / (1 + wd * r).
///   This is MindOCR's form, whose defaults 0.98, 0.92, 0.99 weigh the new gradient. They are 1
///   minus those of the paper (0.02, 0.08, 0.01). Source: Xie et al., arXiv:2208.06677.
/// rmsprop (square s, momentum u, and with `centered` mean a): g += wd * p;
///   s = decay * s + (1 - decay) * g^2; u = momentum * u + lr * g / sqrt(s - a^2 + eps); p -= u.
///   Source: MindSpore's nn.RMSProp.
/// lamb (exp_avg m, exp_avg_sq v):
///   r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + wd * p;
///   p -= lr * |p| / |r| * r, where a norm of 0 makes the ratio 1. Source: You et al.,
///   arXiv:1904.00962.
class RuleOptimizer : public NamedStateOptimizer {
 public:
  /// `rule` is one of the names above. Errors: kInvalidArgument for another.
  RuleOptimizer(const std::string& rule,
                const std::vector<torch::optim::OptimizerParamGroup>& groups,
                const RuleOptions& options);

  /// Skips parameters without a gradient. `closure` must be empty.
  at::Tensor step(LossClosure closure = nullptr) override;

  const std::string& kind() const override { return kind_; }
  const std::vector<std::string>& slots() const override { return slots_; }

 private:
  struct Update;
  using Rule = void (*)(const Update&);
  struct Entry;
  static const Entry& entry_of(const std::string& rule);
  static void lion(const Update& update);
  static void nadam(const Update& update);
  static void adan(const Update& update);
  static void rmsprop(const Update& update);
  static void lamb(const Update& update);

  NamedParamState& state_of(const at::Tensor& parameter);

  Rule rule_;
  std::string kind_;
  std::vector<std::string> slots_;
};

}  // namespace lockstep::inline internal
