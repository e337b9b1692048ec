#include "lockstep/distributed_sampler.h"
#include "lockstep/base/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "lockstep/error.h"

namespace lockstep {
namespace {

void require(bool met, const std::string& what) {
  if (!met) throw Error(ErrorCode::kInvalidArgument, "DistributedSampler: " + what);
}

/// torch.Generator().manual_seed(seed): the standard fixes initialisation and output of
/// std::mt19937, and ATen's are equal.
std::mt19937 torch_generator(int64_t seed) {
  return std::mt19937(static_cast<uint32_t>(static_cast<uint64_t>(seed)));
}

/// torch.rand(1, dtype=torch.double): in [0, 1), a multiple of 2^-53.
double torch_rand(std::mt19937& generator) {
  const uint64_t high = generator();
  const uint64_t low = generator();
  return static_cast<double>((high << 32 | low) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

/// Draws samples by their weights: sample i where a number lies above shares[i - 1] and not above
/// shares[i].
class WeightedOrder {
 public:
  explicit WeightedOrder(std::vector<double> weights) : shares_(std::move(weights)) {
    for (size_t i = 0; i < shares_.size(); ++i) {
      check(std::isfinite(shares_[i]) && shares_[i] >= 0,
            fmt::format("weight {} is {}, not a finite number from 0 on", i, shares_[i]));
      if (i > 0) shares_[i] += shares_[i - 1];
    }
    const double sum = shares_.empty() ? 0 : shares_.back();
    check(std::isfinite(sum) && sum > 0,
          fmt::format("{} weights add up to {}, not to a finite number above 0", shares_.size(),
                      sum));
    for (double& share : shares_) share /= sum;
    first_ = std::upper_bound(shares_.begin(), shares_.end(), 0.0) - shares_.begin();
  }

  std::vector<int64_t> draw(int64_t n, int64_t seed) const {
    check(n == std::ssize(shares_), fmt::format("{} weights for {} samples", shares_.size(), n));
    auto generator = torch_generator(seed);
    std::vector<int64_t> order(static_cast<size_t>(n));
    for (int64_t& sample : order) {
      const auto place =
          std::lower_bound(shares_.begin() + first_, shares_.end(), torch_rand(generator));
      sample = place - shares_.begin();
    }
    return order;
  }

 private:
  static void check(bool met, const std::string& fault) {
    if (!met) throw Error(ErrorCode::kInvalidArgument, "weighted_order: " + fault);
  }

  std::vector<double> shares_;  ///< Of all samples up to this one; the last is 1.
  int64_t first_ = 0;           ///< Sample of a share above 0: the number 0 draws it.
};

}  // namespace

DistributedSampler::DistributedSampler(int64_t dataset_size, const World& world,
                                       SamplerOptions options)
    : DistributedSampler(dataset_size, world.rank, world.size, std::move(options)) {}

DistributedSampler::DistributedSampler(int64_t dataset_size, int rank, int size,
                                       SamplerOptions options)
    : dataset_size_(dataset_size), rank_(rank), size_(size), options_(std::move(options)) {
  require(dataset_size >= 0, fmt::format("a data set of {} samples", dataset_size));
  require(size >= 1 && rank >= 0 && rank < size,
          fmt::format("rank {} is not in [0, {})", rank, size));
  require(!options_.shuffle || dataset_size <= kMaxShuffled,
          fmt::format("{} samples; at most {} can be shuffled", dataset_size, kMaxShuffled));
  require(!options_.shuffle || options_.order, "no order to shuffle by");
  num_samples_ = num_samples(0);
}

int64_t DistributedSampler::num_samples(int64_t taken) const {
  const int64_t rest = dataset_size_ - taken;
  return options_.drop_last ? rest / size_ : divide_up(rest, size_);
}

int64_t DistributedSampler::num_unpadded() const {
  const int64_t own = dataset_size_ <= rank_ ? 0 : divide_up(dataset_size_ - rank_, size_);
  return std::min(own, num_samples_);
}

std::vector<int64_t> DistributedSampler::places(int64_t taken, int64_t more) const {
  require(taken >= 0 && taken <= dataset_size_,
          fmt::format("{} samples of {} are taken", taken, dataset_size_));
  require(more >= 0, fmt::format("{} entries of padding", more));
  require(more == 0 || dataset_size_ > 0,
          fmt::format("{} entries of padding from an empty data set", more));
  std::vector<int64_t> own(static_cast<size_t>(num_samples(taken) + more));
  int64_t place = taken + rank_;
  for (int64_t& entry : own) {
    entry = place % dataset_size_;
    place += size_;
  }
  return own;
}

std::vector<int64_t> DistributedSampler::indices(int64_t taken, int64_t more) const {
  auto own = places(taken, more);
  if (!options_.shuffle) return own;
  // Unsigned, because seed + epoch may exceed int64_t; only the lower 32 bits count.
  const uint64_t seed = static_cast<uint64_t>(options_.seed) + static_cast<uint64_t>(epoch_);
  const auto order = options_.order(dataset_size_, static_cast<int64_t>(seed));
  require(std::ssize(order) == dataset_size_,
          fmt::format("an order of {} entries for {} samples", order.size(), dataset_size_));
  const bool known = std::all_of(order.begin(), order.end(), [&](int64_t sample) {
    return sample >= 0 && sample < dataset_size_;
  });
  require(known, fmt::format("an order with other samples than 0 to {}", dataset_size_ - 1));
  for (int64_t& entry : own) entry = order[static_cast<size_t>(entry)];
  return own;
}

std::vector<int64_t> torch_randperm(int64_t n, int64_t seed) {
  if (n < 0 || n > kMaxShuffled) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("torch_randperm: {} is not in [0, {}]", n, kMaxShuffled));
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  auto generator = torch_generator(seed);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const size_t step = generator() % (order.size() - i);
    std::swap(order[i], order[i + step]);
  }
  return order;
}

SampleOrder weighted_order(std::vector<double> weights) {
  return [order = std::make_shared<const WeightedOrder>(std::move(weights))](
             int64_t n, int64_t seed) { return order->draw(n, seed); };
}

}  // namespace lockstep
