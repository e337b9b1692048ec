#pragma once
// Which samples of a data set a rank reads in an epoch: index for index what PyTorch's
// torch.utils.data.DistributedSampler gives, so that loss curves can be compared.

#include <cstdint>
#include <vector>

#include "lockstep/world.h"

namespace lockstep {

struct SamplerOptions {
  bool shuffle = true;
  int64_t seed = 0;        ///< Epoch e is shuffled with seed + e; the same on every rank.
  bool drop_last = false;  ///< Cut the list to a multiple of the ranks instead of padding it.
};

/// Deals a list of all samples out to the ranks: rank r of P takes positions r, r + P, r + 2P, ...
///
/// The list is 0 .. n-1, or torch_randperm(n, seed + epoch). So that every rank gets equally many,
/// the list is repeated from its start up to a multiple of P (padding), or cut with drop_last.
/// Padding stands at the end of the ranks' lists; evaluation counts the first num_unpadded()
/// positions only, and then every sample of the data set counts once over all ranks.
///
/// After t entries of each of P ranks the first tP positions of the list are used and no other. So
/// the rest of an epoch can be dealt to any other number of ranks: see indices().
/// Source: pytorch, torch/utils/data/distributed.py.
class DistributedSampler {
 public:
  /// Errors: kInvalidArgument for a negative size, a rank outside [0, size), or, with shuffle, more
  /// than kMaxShuffled samples.
  DistributedSampler(int64_t dataset_size, const World& world, SamplerOptions options = {});
  /// The same for part `rank` of `size` whatever the world, e.g. a virtual rank of a rank.
  DistributedSampler(int64_t dataset_size, int rank, int size, SamplerOptions options = {});

  /// Call before each epoch; else every epoch has epoch 0's order.
  void set_epoch(int64_t epoch) { epoch_ = epoch; }
  int64_t epoch() const { return epoch_; }

  /// Entries of indices(), the same on every rank: ceil(n / P), or floor(n / P) with drop_last.
  int64_t num_samples() const { return num_samples_; }
  /// The same of indices(taken).
  int64_t num_samples(int64_t taken) const;
  int64_t dataset_size() const { return dataset_size_; }
  /// To how many ranks, or virtual ranks, the list is dealt.
  int num_parts() const { return size_; }

  /// Leading entries of indices() that are no padding: num_samples() or one less, but fewer where
  /// there are fewer samples than ranks.
  int64_t num_unpadded() const;

  /// This rank's samples in the order of this epoch. Cost: time O(n) and, with shuffle, 8 n bytes
  /// while it runs (n is the whole data set).
  ///
  /// `taken`, in [0, n]: positions of the list that were used before, by whatever ranks. Those
  /// behind them are dealt as above: rank r takes taken + r, taken + r + P, ... Where as many ranks
  /// took them, that is the rest of indices(). `more`: entries of padding behind them. Errors:
  /// kInvalidArgument.
  std::vector<int64_t> indices(int64_t taken = 0, int64_t more = 0) const;

 private:
  int64_t dataset_size_;
  int rank_;
  int size_;
  SamplerOptions options_;
  int64_t num_samples_;
  int64_t epoch_ = 0;
};

/// From here on releases of PyTorch differ in the order they give.
inline constexpr int64_t kMaxShuffled = 4294967295 / 20 - 1;

/// torch.randperm(n, generator=torch.Generator().manual_seed(seed)), 0 <= n <= kMaxShuffled: a
/// Fisher-Yates shuffle from the front by a Mersenne twister. Seeds equal modulo 2^32 are equal;
/// negative ones wrap.
std::vector<int64_t> torch_randperm(int64_t n, int64_t seed);

}  // namespace lockstep
