// This program starts its ranks itself, without a launcher. `spawn 4` trains a line through points
// on four processes, and `spawn 4 threads` on four threads of this one, for a debugger.

#include <ATen/Parallel.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lockstep/lockstep.h"

/// The work of each rank; `rank` is world.rank.
void train(int rank) {
  auto world = lockstep::World::join();
  at::set_num_threads(world.threads);
  auto group = lockstep::ProcessGroup::create(world);
  torch::nn::Linear net(1, 1);  // the model takes rank 0's weights
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.5);
  const auto mine = torch::arange(rank, 256, world.size);
  const auto x = torch::linspace(-1, 1, 256).unsqueeze(1).index_select(0, mine);
  for (int step = 0; step < 200; ++step) {
    model.zero_grad();
    (model(x) - (3 * x - 2)).square().mean().backward();
    optimizer.step();
  }
  std::printf("rank %d of %d: y = %.4f x + %.4f\n", rank, world.size, net->weight.item<double>(),
              net->bias.item<double>());
}

int start(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const bool threads = argc > 2 && argv[2] == std::string("threads");
  lockstep::spawn(ranks, train, {.threads = threads});  // throws the first failure of any rank
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("spawn", start, argc, argv);
}
