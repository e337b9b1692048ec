#pragma once
// The optimizers of optimizer.opt: one table of their differences, for the reader of the
// configuration, the construction of optimizers, and the estimate of their memory.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/train/config/config.h"

namespace lockstep::inline internal {

/// The code that computes a step: libtorch's, or RuleOptimizer.
enum class OptimizerRule : uint8_t { kSgd, kAdam, kAdamW, kAdagrad, kOurs };

struct OptimizerKind {
  const char* name;
  const char* about;  ///< One line, for --list.
  OptimizerRule rule;
  std::vector<std::string_view> keys;  ///< Keys of optimizer that other kinds lack.
  int slots;                           ///< Tensors of a parameter's size that it always keeps.
  bool decays_norms = false;  ///< In MindOCR without groups: see OptimizerConfig::exact_decay.
  // Defaults of MindOCR and libtorch that differ from OptimizerConfig.
  double beta1 = OptimizerConfig().beta1;
  double beta2 = OptimizerConfig().beta2;
  double eps = OptimizerConfig().eps;

  bool has(std::string_view key) const;
};

std::span<const OptimizerKind> optimizer_kinds();

/// Null for an unknown name.
const OptimizerKind* find_optimizer(std::string_view name);

/// The kind of a configuration that was read. Errors: kInvalidArgument for an unknown name.
const OptimizerKind& optimizer_kind(const OptimizerConfig& config);

}  // namespace lockstep::inline internal
