#include "lockstep/train/rank_change.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/counted.h"
#include "lockstep/base/rounding.h"
#include "lockstep/error.h"
#include "lockstep/train/batch_share.h"

namespace lockstep::inline internal {
namespace {

std::string number(double value) {
  return fmt::format("{:.6g}", value);
}

/// The run as it was.
struct Before {
  int parts = 1;  ///< Virtual ranks, or ranks.
  bool is_virtual = false;
  int64_t batch = 0;  ///< Global; 0: not known.
};

Before before(const RankChange& change, const Config* config) {
  if (config == nullptr) return {change.from, false, 0};
  const auto given = static_cast<int>(config->parallel.virtual_ranks);
  if (given > 0 && change.from > given) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--from {}: parallel.virtual_ranks is {}, so that run had at most as "
                            "many ranks",
                            change.from, given));
  }
  Before run{given > 0 ? given : change.from, given > 0, 0};
  run.batch = config->parallel.global_batch > 0 ? config->parallel.global_batch
                                                : global_batch(config->train, run.parts);
  return run;
}

std::string same_run(const RankChange& change, const Before& run) {
  std::string text = "Same run, by virtual ranks: ";
  if (change.to > run.parts) {
    return text + fmt::format(
                      "not with more than {}: a run that may grow needs "
                      "parallel.virtual_ranks from the start\n",
                      counted(run.parts, "rank"));
  }
  text += run.is_virtual ? "the configuration as it is\n"
                         : fmt::format("-o parallel.virtual_ranks={}\n", run.parts);
  const int64_t most = divide_up(run.parts, change.to);
  const int64_t least = run.parts / change.to;
  text += fmt::format(
      "  Each rank does the work of {}: a step takes some {:.3g} times as long.\n",
      most == least ? std::to_string(most) : fmt::format("{} or {}", least, most),
      static_cast<double>(most) / static_cast<double>(divide_up(run.parts, change.from)));
  text += fmt::format("  Global batch{}, steps and learning rate stay as they are.\n",
                      run.batch > 0 ? fmt::format(" {}", run.batch) : "");
  text += run.is_virtual ? "  So do the bits.\n"
                         : "  So do the bits, if that run had parallel.threads=1.\n";
  return text;
}

/// The settings for the same global batch, or the nearest one that can be shared.
std::string options_of_batch(const RankChange& change, const Before& run, const Config& config) {
  const int64_t most = config.train.loader.batch_size;
  const bool can = share_batch(run.batch, change.to, most).has_value();
  if (can && config.parallel.global_batch > 0 && !run.is_virtual)
    return "the configuration as it is";
  const int64_t nearest = nearest_shared_batch(run.batch, change.to, most);
  std::string text = fmt::format("-o parallel.global_batch={}", nearest);
  if (run.is_virtual) text += " parallel.virtual_ranks=0";
  if (config.train.gradient_accumulation_steps > 1) {
    text += " train.gradient_accumulation_steps=1";
  }
  if (!can) {
    const int64_t below = shared_batch_below(run.batch, change.to, most);
    const int64_t other = nearest == below ? shared_batch_above(run.batch, change.to, most) : below;
    text += fmt::format(" ({}{} cannot share {} equally)",
                        other > 0 ? fmt::format("or {}: ", other) : "", counted(change.to, "rank"),
                        run.batch);
  }
  return text;
}

std::string same_batch(const RankChange& change, const Before& run, const Config* config) {
  return fmt::format(
      "Same batch, by accumulation: {1}\n"
      "  Each rank takes {0:.3g} times as many samples: a step takes some {0:.3g} times as long.\n"
      "  Steps and learning rate stay as they are. The bits do not.\n",
      static_cast<double>(change.from) / change.to,
      config ? options_of_batch(change, run, *config)
             : "-o parallel.global_batch=N, the batch of all ranks of that run");
}

/// A micro-step of batch_size samples takes as long as a step before if that had as many.
std::string duration_of_step(const Before& run, const Config* config) {
  if (config != nullptr && config->parallel.global_batch > 0) {
    const int64_t most = config->train.loader.batch_size;
    if (share_batch(run.batch, run.parts, most) != BatchShare{most, 1}) return "";
  }
  return fmt::format(", each as long as {}", run.is_virtual ? "one of a virtual rank" : "before");
}

std::string other_run(const RankChange& change, const Before& run, const Config* config) {
  const int64_t batch = config ? global_batch(config->train, change.to) : 0;
  const double share = config ? static_cast<double>(batch) / static_cast<double>(run.batch)
                              : static_cast<double>(change.to) / run.parts;
  const bool is_shared = config != nullptr && config->parallel.global_batch > 0;
  const std::string leave = fmt::format("{}{}", run.is_virtual ? " parallel.virtual_ranks=0" : "",
                                        is_shared ? " parallel.global_batch=0" : "");
  const char* const kind = share < 1 ? "Smaller" : share > 1 ? "Larger" : "Another";
  std::string text = fmt::format("{} run, by rule: ", kind);
  if (config == nullptr) {
    text += fmt::format("scheduler.lr times {} (linear) or {} (square root)\n", number(share),
                        number(std::sqrt(share)));
  } else if (config->parallel.scale_rate != RateScale::kNone) {
    const double lr = config->scheduler.lr * rate_factor(config->parallel, batch);
    text += fmt::format("{}; its scale_rate makes the learning rate {}\n",
                        leave.empty() ? "the configuration as it is" : "-o" + leave, number(lr));
  } else {
    text += fmt::format("-o scheduler.lr={} (linear; {} by square root){}\n",
                        number(config->scheduler.lr * share),
                        number(config->scheduler.lr * std::sqrt(share)), leave);
  }
  text += fmt::format("  Global batch {}: {:.4g} times as many steps an epoch{}.\n",
                      config ? std::to_string(batch) : fmt::format("times {}", number(share)),
                      1 / share, duration_of_step(run, config));
  if (config != nullptr && config->parallel.scale_rate == RateScale::kNone) {
    text += fmt::format(
        "  For any number of ranks: -o parallel.scale_rate=linear "
        "parallel.reference_batch={}\n",
        run.batch);
  }
  return text;
}

}  // namespace

double rate_factor(const ParallelConfig& config, int64_t batch) {
  if (config.scale_rate == RateScale::kNone) return 1;
  const double share = static_cast<double>(batch) / static_cast<double>(config.reference_batch);
  return config.scale_rate == RateScale::kLinear ? share : std::sqrt(share);
}

int64_t global_batch(const TrainSection& train, int parts) {
  return train.loader.batch_size * parts * train.gradient_accumulation_steps;
}

std::string rate_line(const Config& config, int parts) {
  const auto& parallel = config.parallel;
  if (parallel.scale_rate == RateScale::kNone) return "";
  const int64_t batch = global_batch(config.train, parts);
  const double factor = rate_factor(parallel, batch);
  return fmt::format(
      "Learning rate: scheduler.lr {} x {} = {} (parallel.scale_rate {}: a batch of {}, "
      "reference_batch {})",
      number(config.scheduler.lr), number(factor), number(config.scheduler.lr * factor),
      parallel.scale_rate == RateScale::kLinear ? "linear" : "sqrt", batch,
      parallel.reference_batch);
}

std::string describe_rank_change(const RankChange& change, const Config* config) {
  const Before run = before(change, config);
  return fmt::format(
      "A run on {} goes on with {} in one of three ways, each with model.resume=True:\n{}{}{}",
      counted(change.from, "rank"), change.to, same_run(change, run),
      same_batch(change, run, config), other_run(change, run, config));
}

}  // namespace lockstep::inline internal
