#include "lockstep/train/rank_change.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/counted.h"
#include "lockstep/base/rounding.h"
#include "lockstep/error.h"

namespace lockstep {
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
  run.batch = global_batch(config->train, run.parts);
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

std::string other_run(const RankChange& change, const Before& run, const Config* config) {
  const double share = static_cast<double>(change.to) / run.parts;
  const char* const kind = change.to < run.parts ? "Smaller" : "Larger";
  std::string text = fmt::format("{} run, by rule: ", kind);
  if (config == nullptr) {
    text += fmt::format("scheduler.lr times {} (linear) or {} (square root)\n", number(share),
                        number(std::sqrt(share)));
  } else if (config->parallel.scale_rate != RateScale::kNone) {
    const double lr = config->scheduler.lr *
                      rate_factor(config->parallel, global_batch(config->train, change.to));
    text += fmt::format(
        "{}; its scale_rate makes the learning rate {}\n",
        run.is_virtual ? "-o parallel.virtual_ranks=0" : "the configuration as it is", number(lr));
  } else {
    text += fmt::format("-o scheduler.lr={} (linear; {} by square root){}\n",
                        number(config->scheduler.lr * share),
                        number(config->scheduler.lr * std::sqrt(share)),
                        run.is_virtual ? " parallel.virtual_ranks=0" : "");
  }
  text +=
      fmt::format("  Global batch {}: {:.4g} times as many steps an epoch, each as long as {}.\n",
                  config ? std::to_string(global_batch(config->train, change.to))
                         : fmt::format("times {}", number(share)),
                  1 / share, run.is_virtual ? "one of a virtual rank" : "before");
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
      "A run on {} goes on with {} in one of two ways, each with model.resume=True:\n{}{}",
      counted(change.from, "rank"), change.to, same_run(change, run),
      other_run(change, run, config));
}

}  // namespace lockstep
