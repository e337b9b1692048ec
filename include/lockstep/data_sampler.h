#pragma once
// DataSampler gives libtorch's own loaders (torch::data::make_data_loader) the samples of this
// rank.

#include <ATen/core/ivalue.h>  // before torch: clang wants IValue complete there
#include <ATen/ops/scalar_tensor.h>
#include <torch/data/samplers/base.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/distributed_sampler.h"

namespace lockstep {

/// The samples of this rank, for a loader that takes a sampler.
///
/// Use:
///   lockstep::DataSampler sampler({static_cast<int64_t>(*data_set.size()), world});
///   auto loader = torch::data::make_data_loader(data_set, sampler, batch_size);
///   for (int64_t epoch = 0; epoch < epochs; ++epoch) {
///     sampler.set_epoch(epoch);               // else every epoch has epoch 0's order
///     for (auto& batch : *loader) {
///       optimizer.zero_grad();
///       loss_of(model(batch.data), batch.target).backward();
///       optimizer.step();
///     }
///   }
///
/// Copies share their epoch, because a loader keeps its own copy. Every rank gets the same number
/// of samples. Header only: link lockstep::parallel.
///
/// Threads: one at a time, because copies share their state without a lock. A loader calls it in
/// the thread that iterates, not in its workers.
/// Cost: each epoch one DistributedSampler::indices(), and 8 bytes per sample of this rank. Nothing
/// is collective.
/// Errors: load() throws libtorch's c10::Error for an archive without this state. Others throw
/// none.
class DataSampler : public torch::data::samplers::Sampler<> {
  template <class Sampler, class NewSize>
  static NewSize argument_of(void (Sampler::*)(NewSize));
  /// libtorch's optional number, whose type differs between its versions.
  using NewSize = decltype(argument_of(&torch::data::samplers::Sampler<>::reset));
  using Request =
      decltype(std::declval<torch::data::samplers::Sampler<>&>().next(std::declval<size_t>()));

 public:
  explicit DataSampler(DistributedSampler sampler)
      : state_(std::make_shared<State>(State{std::move(sampler), {}, 0, std::nullopt})) {
    state_->order = state_->sampler.indices();
  }

  /// Takes effect at the next begin() of a loader.
  void set_epoch(int64_t epoch) { state_->sampler.set_epoch(epoch); }
  int64_t epoch() const { return state_->sampler.epoch(); }
  /// Samples of this rank in an epoch.
  int64_t num_samples() const { return state_->sampler.num_samples(); }

  /// Called by the loader at an epoch's begin. The data set's size is the sampler's own.
  void reset(NewSize = {}) override {
    const bool goes_on = std::exchange(state_->loaded, std::nullopt) == epoch();
    if (goes_on && state_->next < state_->order.size()) return;
    state_->order = state_->sampler.indices();
    state_->next = 0;
  }
  /// The next indices, at most `batch_size`; none at the epoch's end.
  Request next(size_t batch_size) override {
    state_->loaded.reset();
    const auto& order = state_->order;
    const size_t count = std::min(batch_size, order.size() - state_->next);
    if (count == 0) return {};
    const auto begin = order.begin() + static_cast<ptrdiff_t>(state_->next);
    state_->next += count;
    return std::vector<size_t>(begin, begin + static_cast<ptrdiff_t>(count));
  }

  /// Saves the epoch and the position in it. A loader with workers has asked for batches ahead, and
  /// the position is behind these.
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("epoch", at::scalar_tensor(epoch(), at::kLong), /*is_buffer=*/true);
    archive.write("next", at::scalar_tensor(static_cast<int64_t>(state_->next), at::kLong),
                  /*is_buffer=*/true);
  }
  /// The next begin() of a loader goes on from the saved position, unless that is the epoch's end
  /// or set_epoch() gave another epoch meanwhile.
  void load(torch::serialize::InputArchive& archive) override {
    at::Tensor epoch, next;
    archive.read("epoch", epoch, /*is_buffer=*/true);
    archive.read("next", next, /*is_buffer=*/true);
    set_epoch(epoch.item<int64_t>());
    state_->order = state_->sampler.indices();
    state_->next = std::min(static_cast<size_t>(next.item<int64_t>()), state_->order.size());
    state_->loaded = this->epoch();
  }

 private:
  struct State {
    DistributedSampler sampler;
    std::vector<int64_t> order;
    size_t next;
    std::optional<int64_t> loaded;  ///< The epoch of a load() since which nothing was asked for.
  };
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
