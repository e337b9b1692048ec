// The same bits on any number of processes: the global batch has six parts, whatever the number of
// ranks. lockstep run --nproc_per_node 4 -- virtual_ranks

#include <ATen/Parallel.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

constexpr int kVirtualRanks = 6;
constexpr uint64_t kSeed = 1;

int train(int, char**) {
  auto world = lockstep::World::join();
  at::set_num_threads(1);  // the bits of a sum depend on the number of threads
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(kSeed);
  const auto x = torch::rand({480, 1}) * 2 - 1;
  const auto y = (3 * x).sin();
  torch::nn::Sequential net(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Dropout(0.1),
                            torch::nn::Linear(32, 1));
  auto model = lockstep::DistributedDataParallel(net, group, {.virtual_ranks = kVirtualRanks});
  torch::optim::Adam optimizer(net->parameters(), 0.03);
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < 60; ++epoch) {
    for (int64_t batch = 0; batch < 5; ++batch, ++step) {
      model.zero_grad();
      model.for_each_virtual_rank([&](int virtual_rank) {
        // Data and random numbers are those of the virtual rank, not of the process.
        auto sampler = lockstep::DistributedSampler(x.size(0), virtual_rank, kVirtualRanks);
        sampler.set_epoch(epoch);
        lockstep::seed_virtual_rank(kSeed, step, virtual_rank);  // for dropout
        const auto rows = torch::tensor(sampler.indices()).narrow(0, 16 * batch, 16);
        (model(x.index_select(0, rows)) - y.index_select(0, rows)).square().mean().backward();
      });
      optimizer.step();
    }
  }
  const torch::NoGradGuard no_grad;
  net->eval();
  const auto error = (net->forward(x) - y).square().mean().item<double>();
  std::printf("error %.17g\n", error);
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("virtual_ranks", train, argc, argv);
}
