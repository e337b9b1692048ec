#pragma once
// A DistributedSampler chooses the samples of a data set that a rank reads in an epoch. They equal,
// index by index, those of PyTorch's torch.utils.data.DistributedSampler. So loss curves can be
// compared.
//
// Use:
//   lockstep::DistributedSampler sampler(images.size(0), world);
//   for (int64_t epoch = 0; epoch < epochs; ++epoch) {
//     sampler.set_epoch(epoch);
//     for (const auto& rows : torch::tensor(sampler.indices()).split(/*split_size=*/32)) {
//       optimizer.zero_grad();
//       loss_of(model(images.index_select(0, rows)), labels.index_select(0, rows)).backward();
//       optimizer.step();
//     }
//   }
//
// Threads: any number may read one sampler; none may while set_epoch() runs. Ranks do not
// communicate. Cost: of indices() and of the orders only, see there. Errors: kInvalidArgument.

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/world.h"

namespace lockstep {

/// Beyond this size, releases of PyTorch differ in their order.
inline constexpr int64_t kMaxShuffled = 4294967295 / 20 - 1;

/// torch.randperm(n, generator=torch.Generator().manual_seed(seed)), 0 <= n <= kMaxShuffled: a
/// Fisher-Yates shuffle from the front by a Mersenne twister. Seeds equal modulo 2^32 are equal;
/// negative ones wrap. Cost: time O(n), 8 n bytes. Errors: kInvalidArgument for another n.
std::vector<int64_t> torch_randperm(int64_t n, int64_t seed);

/// The list of an epoch: n entries in 0 .. n-1. `seed`: that of the epoch. It depends on these
/// alone, and so is the same on every rank. Threads call it at once.
using SampleOrder = std::function<std::vector<int64_t>(int64_t n, int64_t seed)>;

/// For SamplerOptions::order: the samples of torch.utils.data.WeightedRandomSampler(weights, n,
/// replacement=True, generator=torch.Generator().manual_seed(seed)), index by index. An epoch is n
/// draws. Each one takes sample i with the probability weights[i] / sum, whatever was drawn before.
/// So an epoch has some samples several times, and others not at all.
///
/// Use: for classes of 90 and 10 samples, each of which is to be drawn as often as the other:
///   lockstep::DistributedSampler sampler(
///       100, world, {.order = lockstep::weighted_order(weights)});  // of 1.0 / 90 and 1.0 / 10
///
/// Cost: 8 bytes a sample as long as the order lives, time O(n log n) an epoch. Errors:
/// kInvalidArgument naming a weight that is negative or not finite. The same if all add up to 0, or
/// to no finite number. The order has that error for another n than there are weights.
/// Source: torch.multinomial with replacement, of ATen on a CPU.
SampleOrder weighted_order(std::vector<double> weights);

struct SamplerOptions {
  bool shuffle = true;
  int64_t seed = 0;        ///< Epoch e is shuffled with seed + e; the same on every rank.
  bool drop_last = false;  ///< Cut the list to a multiple of the ranks instead of padding it.
  /// With `shuffle`: each sample once, or as weighted_order() draws them, or one of one's own.
  SampleOrder order = torch_randperm;
};

/// Deals a list of all samples out to the ranks: rank r of P takes positions r, r + P, r + 2P, ...
///
/// The list is 0 .. n-1, or SamplerOptions::order of n and seed + epoch. To give every rank the
/// same number, the list is repeated from its start up to a multiple of P (padding), or cut with
/// drop_last. Padding is at the end of the ranks' lists. An evaluation that counts only the first
/// num_unpadded() positions counts every entry of the list once over all ranks.
///
/// t entries of each of P ranks are exactly the first tP positions of the list. So the rest of an
/// epoch can be dealt to any other number of ranks: see indices().
/// Source: pytorch, torch/utils/data/distributed.py.
class DistributedSampler {
 public:
  /// Errors: kInvalidArgument for a negative size, a rank outside [0, size), or, with shuffle, more
  /// than kMaxShuffled samples or no order.
  DistributedSampler(int64_t dataset_size, const World& world, SamplerOptions options = {});
  /// The same for part `rank` of `size` independent of the world, e.g. for a virtual rank.
  DistributedSampler(int64_t dataset_size, int rank, int size, SamplerOptions options = {});

  /// Call before each epoch; otherwise every epoch has epoch 0's order.
  void set_epoch(int64_t epoch) { epoch_ = epoch; }
  int64_t epoch() const { return epoch_; }

  /// Entries of indices(), the same on every rank: ceil(n / P), or floor(n / P) with drop_last.
  int64_t num_samples() const { return num_samples_; }
  /// Entries of indices(taken). `taken` is not checked here.
  int64_t num_samples(int64_t taken) const;
  int64_t dataset_size() const { return dataset_size_; }
  /// Number of ranks, or virtual ranks, that share the list.
  int num_parts() const { return size_; }

  /// Leading entries of indices() without padding: num_samples() or one less, but fewer if there
  /// are fewer samples than ranks.
  int64_t num_unpadded() const;

  /// This rank's samples in the order of this epoch. Cost: time O(n) and, with shuffle, 8 n bytes
  /// of temporary memory (n is the size of the whole data set).
  ///
  /// `taken`, in [0, n]: positions of the list already used, by any number of ranks. The positions
  /// after them are dealt as above: rank r takes taken + r, taken + r + P, and so on. If the same
  /// number of ranks used them, this is the rest of indices(). `more`: additional entries of
  /// padding at the end, 0 for an empty data set. Errors: kInvalidArgument; those of
  /// SamplerOptions::order.
  std::vector<int64_t> indices(int64_t taken = 0, int64_t more = 0) const;
  /// Where the entries of indices(taken, more) are in the epoch's list; padding repeats places of
  /// its start. With weighted_order() a place is the key of a draw's random values: two draws of
  /// one sample differ in it. It does not depend on the number of ranks. Cost: O(entries).
  /// Errors: kInvalidArgument.
  std::vector<int64_t> places(int64_t taken = 0, int64_t more = 0) const;

 private:
  int64_t dataset_size_;
  int rank_;
  int size_;
  SamplerOptions options_;
  int64_t num_samples_;
  int64_t epoch_ = 0;
};

}  // namespace lockstep
