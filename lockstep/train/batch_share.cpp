#include "lockstep/train/batch_share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "lockstep/base/counted.h"
#include "lockstep/base/rounding.h"
#include "lockstep/error.h"
#include "lockstep/train/rank_change.h"
#include "lockstep/train/setup.h"

namespace lockstep::inline internal {
namespace {

/// The least number of equal micro-steps of a part; 0: none will do. The search ends at twice the
/// unequal ones, and before single samples: a prime number of samples would else end there.
int64_t equal_micro_steps(int64_t samples, int64_t most) {
  const int64_t least = divide_up(samples, most);
  if (samples <= 0) return 0;
  if (samples % least == 0) return least;
  for (int64_t count = least + 1; count <= 2 * least && 2 * count <= samples; ++count) {
    if (samples % count == 0) return count;
  }
  return 0;
}

bool is_share(int64_t samples, int64_t most) {
  return equal_micro_steps(samples, most) > 0;
}

const char* kind_of_parts(const Config& config) {
  return config.parallel.virtual_ranks > 0 ? "virtual rank" : "rank";
}

/// "192 or 288", without a 0.
std::string either(int64_t below, int64_t above) {
  std::vector<int64_t> numbers;
  if (below > 0) numbers.push_back(below);
  if (above > 0) numbers.push_back(above);
  return fmt::format("{}", fmt::join(numbers, " or "));
}

/// The nearest number of parts that can share the batch, in steps of `step`; 0: none.
int64_t other_parts(int64_t batch, int64_t parts, int64_t most, int step) {
  for (parts += step; parts > 0 && (step < 0 || parts <= batch); parts += step) {
    if (batch % parts == 0 && is_share(batch / parts, most)) return parts;
  }
  return 0;
}

[[noreturn]] void refuse_batch(const Config& config, int parts) {
  const int64_t batch = config.parallel.global_batch;
  const int64_t most = config.train.loader.batch_size;
  const std::string others =
      either(other_parts(batch, parts, most, -1), other_parts(batch, parts, most, 1));
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "parallel.global_batch: {} cannot share {} samples equally, in equal batches of "
          "at most {} (train.loader.batch_size); they can share {}{}",
          counted(parts, kind_of_parts(config)), batch, most,
          either(shared_batch_below(batch, parts, most), shared_batch_above(batch, parts, most)),
          others.empty() ? ""
                         : fmt::format(", and {} {}{} can share {}", others, kind_of_parts(config),
                                       others == "1" ? "" : "s", batch)));
}

}  // namespace

std::optional<BatchShare> share_batch(int64_t batch, int parts, int64_t most) {
  const int64_t samples = batch / parts;
  const int64_t accumulation = equal_micro_steps(samples, most);
  if (batch % parts != 0 || accumulation == 0) return std::nullopt;
  return BatchShare{samples / accumulation, accumulation};
}

int64_t shared_batch_below(int64_t batch, int parts, int64_t most) {
  int64_t samples = batch / parts;
  while (samples > 0 && !is_share(samples, most)) --samples;
  return samples * parts;
}

int64_t shared_batch_above(int64_t batch, int parts, int64_t most) {
  int64_t samples = divide_up(batch, parts);
  while (!is_share(samples, most)) ++samples;  // at the latest the next multiple of `most`
  return samples * parts;
}

int64_t nearest_shared_batch(int64_t batch, int parts, int64_t most) {
  const int64_t below = shared_batch_below(batch, parts, most);
  const int64_t above = shared_batch_above(batch, parts, most);
  return below > 0 && batch - below <= above - batch ? below : above;
}

std::string share_global_batch(Config& config, const World& world) {
  const int64_t batch = config.parallel.global_batch;
  if (batch == 0) return "";
  const int parts = virtual_ranks_of(config, world).total;
  const int64_t most = config.train.loader.batch_size;
  auto share = share_batch(batch, parts, most);
  std::string note;
  if (!share && world.generation == 1) refuse_batch(config, parts);
  if (!share) {
    const int64_t nearest = nearest_shared_batch(batch, parts, most);
    share = share_batch(nearest, parts, most);
    note = fmt::format(
        "parallel.global_batch: {} cannot share {} samples equally. Hosts joined or left: until "
        "they can again, the global batch is {}",
        counted(parts, kind_of_parts(config)), batch, nearest);
  }
  config.train.loader.batch_size = share->batch_size;
  config.train.gradient_accumulation_steps = share->accumulation;
  return note;
}

std::string batch_line(const Config& config, int parts) {
  if (config.parallel.global_batch == 0) return "";
  const auto& train = config.train;
  return fmt::format("Global batch: {} = {} x {} x {} accumulated (parallel.global_batch)",
                     global_batch(train, parts), train.loader.batch_size,
                     counted(parts, kind_of_parts(config)), train.gradient_accumulation_steps);
}

}  // namespace lockstep::inline internal
