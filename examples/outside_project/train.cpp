// Fits a line on all ranks and saves the weights on rank 0.

// Lockstep's header comes first, as in many programs: it needs no header before it.
#include "lockstep/lockstep.h"

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>

int main(int argc, char** argv) {
  const auto world = lockstep::World::join();
  const auto group = lockstep::ProcessGroup::create(world);
  torch::nn::Linear net(1, 1);
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.5);

  // Each rank sees its own part of the line y = 3 x + 1.
  const auto first = static_cast<float>(world.rank) / static_cast<float>(world.size);
  const auto x = first + at::arange(16).unsqueeze(1) / (16.0 * world.size);
  const auto y = 3 * x + 1;
  double loss = 0;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    const auto error = (model(x) - y).square().mean();
    error.backward();
    optimizer.step();
    loss = error.item<double>();
  }
  if (world.rank == 0 && argc > 1) lockstep::save_tensors(argv[1], lockstep::module_tensors(*net));
  std::printf("ranks %d, weight %.6f, bias %.6f\n", world.size, net->weight.item<double>(),
              net->bias.item<double>());
  return loss < 1e-3 ? 0 : 1;
}
