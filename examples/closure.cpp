// libtorch's own loader and an optimizer that calls a closure more than once per step: LBFGS with a
// line search. Its decisions depend on the loss, so all ranks need the same one: the closure
// returns the mean over the ranks.
// lockstep run --nproc_per_node 2 -- closure

#include <torch/data.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/lbfgs.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

/// Points of a sine.
struct Wave : torch::data::Dataset<Wave> {
  torch::data::Example<> get(size_t index) override {
    const auto x = torch::full({1}, static_cast<double>(index) / 128 - 1, torch::kFloat);
    return {x, (3 * x).sin()};
  }
  torch::optional<size_t> size() const override { return 256; }
};

int train(int, char**) {
  lockstep::start_fork_server();  // loaded once per host; the ranks are forked from there
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  lockstep::DataSampler sampler(lockstep::DistributedSampler(256, world));
  auto loader = torch::data::make_data_loader(
      Wave().map(torch::data::transforms::Stack<>()), sampler,
      torch::data::DataLoaderOptions().batch_size(256).workers(2));  // all of this rank's at once
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(1, 16), torch::nn::Tanh(), torch::nn::Linear(16, 1));
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::LBFGS optimizer(
      net->parameters(), torch::optim::LBFGSOptions(1).max_iter(5).line_search_fn("strong_wolfe"));
  torch::Tensor loss;
  for (int epoch = 0; epoch < 40; ++epoch) {
    sampler.set_epoch(epoch);
    for (const auto& batch : *loader) {
      loss = optimizer.step([&] {
        optimizer.zero_grad();
        auto mean = (model(batch.data) - batch.target).square().mean();
        mean.backward();
        mean = mean.detach();
        lockstep::all_reduce(group, mean, lockstep::ReduceOp::kAvg).wait();
        return mean;
      });
    }
  }
  std::printf("error %.9f\n", loss.item<double>());
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("closure", train, argc, argv);
}
