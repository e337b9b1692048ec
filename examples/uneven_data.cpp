// Ranks with different numbers of batches: a rank without data takes part in the steps of the
// others with gradients of zero. lockstep run --nproc_per_node 2 -- uneven_data

#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

int train(int, char**) {
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(1);
  torch::nn::Linear net(1, 1);
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::Adam optimizer(net->parameters(), 0.1);
  // Rank 0 has 16 batches an epoch, rank 1 has 18, rank 2 has 20, ...
  const int64_t batches = 16 + 2 * world.rank;
  const auto x = torch::rand({batches * 8, 1}) * 2 - 1;
  const auto y = 3 * x - 2;
  int64_t own_steps = 0, others_steps = 0;
  lockstep::JoinOptions options;
  options.divide_by_active = true;  // a rank without data does not weaken the gradients
  options.on_shadow_step = [&] {    // keeps the state of Adam equal on all ranks
    optimizer.step();
    ++others_steps;
  };
  for (int epoch = 0; epoch < 20; ++epoch) {
    const auto body = [&] {
      for (const auto& batch : torch::randperm(x.size(0)).split(8)) {
        model.zero_grad();
        (model(x.index_select(0, batch)) - y.index_select(0, batch)).square().mean().backward();
        optimizer.step();
        ++own_steps;
      }
    };
    model.join(body, options);
  }
  std::printf("y = %.6f x + %.6f, %ld + %ld steps\n", net->weight.item<double>(),
              net->bias.item<double>(), own_steps, others_steps);
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("uneven_data", train, argc, argv);
}
