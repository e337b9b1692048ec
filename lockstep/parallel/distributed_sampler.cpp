#include "lockstep/distributed_sampler.h"
#include "lockstep/base/rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "lockstep/error.h"

namespace lockstep {
namespace {

void require(bool met, const std::string& what) {
  if (!met) throw Error(ErrorCode::kInvalidArgument, "DistributedSampler: " + what);
}

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

std::vector<int64_t> DistributedSampler::indices(int64_t taken, int64_t more) const {
  require(taken >= 0 && taken <= dataset_size_,
          fmt::format("{} samples of {} are taken", taken, dataset_size_));
  require(more >= 0, fmt::format("{} entries of padding", more));
  require(more == 0 || dataset_size_ > 0,
          fmt::format("{} entries of padding from an empty data set", more));
  // Unsigned, because seed + epoch may exceed int64_t; only the lower 32 bits count.
  const uint64_t seed = static_cast<uint64_t>(options_.seed) + static_cast<uint64_t>(epoch_);
  std::vector<int64_t> order;
  if (options_.shuffle) {
    order = options_.order(dataset_size_, static_cast<int64_t>(seed));
    require(std::ssize(order) == dataset_size_,
            fmt::format("an order of {} entries for {} samples", order.size(), dataset_size_));
    const bool known = std::all_of(order.begin(), order.end(), [&](int64_t sample) {
      return sample >= 0 && sample < dataset_size_;
    });
    require(known, fmt::format("an order with other samples than 0 to {}", dataset_size_ - 1));
  }

  const int64_t count = num_samples(taken) + more;
  std::vector<int64_t> own(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = (taken + rank_ + i * size_) % dataset_size_;
    own[static_cast<size_t>(i)] =
        options_.shuffle ? order[static_cast<size_t>(position)] : position;
  }
  return own;
}

std::vector<int64_t> torch_randperm(int64_t n, int64_t seed) {
  if (n < 0 || n > kMaxShuffled) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("torch_randperm: {} is not in [0, {}]", n, kMaxShuffled));
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  // The standard fixes initialisation and output of std::mt19937, and ATen's are equal.
  std::mt19937 generator(static_cast<uint32_t>(static_cast<uint64_t>(seed)));
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const size_t step = generator() % (order.size() - i);
    std::swap(order[i], order[i + step]);
  }
  return order;
}

}  // namespace lockstep
