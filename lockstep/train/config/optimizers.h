#pragma once
// The optimizers that optimizer.opt can name: one table of what sets them apart, for the reader of
// the configuration, for those who make them, and for those who count their memory.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/train/config/config.h"

namespace lockstep {

/// Which code computes a step: libtorch's, or RuleOptimizer.
enum class OptimizerRule : uint8_t { kSgd, kAdam, kAdamW, kAdagrad, kOurs };

struct OptimizerKind {
  const char* name;
  OptimizerRule rule;
  std::vector<std::string_view> keys;  ///< Of optimizer, which others do not have.
  int slots;                           ///< Tensors of a parameter's size that it keeps in any case.
  bool decays_norms = false;  ///< In MindOCR without groups: see OptimizerConfig::exact_decay.
  // Where MindOCR's and libtorch's defaults are not those of OptimizerConfig.
  double beta1 = OptimizerConfig().beta1;
  double beta2 = OptimizerConfig().beta2;
  double eps = OptimizerConfig().eps;

  bool has(std::string_view key) const;
};

std::span<const OptimizerKind> optimizer_kinds();

/// Null where there is none of that name.
const OptimizerKind* find_optimizer(std::string_view name);

/// Of a configuration that was read. Errors: kInvalidArgument for another name.
const OptimizerKind& optimizer_kind(const OptimizerConfig& config);

}  // namespace lockstep
