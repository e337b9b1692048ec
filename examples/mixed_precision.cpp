// Mixed precision with a scaled loss: the layers compute in 16 bits, and all ranks skip a step if
// gradients overflow on any of them. The first scale is far too large on purpose.
// lockstep run --nproc_per_node 2 -- mixed_precision

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cmath>
#include <cstdio>

#include "lockstep/lockstep.h"

int train(int, char**) {
  lockstep::start_fork_server();  // loaded once per host; the ranks are forked from there
  torch::manual_seed(1);
  const auto x = torch::linspace(-1, 1, 256).unsqueeze(1);
  const auto y = 3 * x - 2;
  torch::nn::Linear net(1, 1);
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.2);
  lockstep::GradScaler scaler(group, {.dynamic = true, .init_scale = 0x1p127});
  const auto mine = torch::arange(world.rank, 256, world.size);
  const auto own_x = x.index_select(0, mine);
  const auto own_y = y.index_select(0, mine);
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    const auto answer = lockstep::forward_at(lockstep::AmpLevel::kO1, own_x,
                                             [&](const auto& points) { return model(points); });
    scaler.scale((answer - own_y).square().mean()).backward();
    scaler.step(optimizer);
    scaler.update();
  }
  if (world.rank != 0) return 0;
  std::printf("y = %.1f x + %.1f, %ld steps left out, scale 2^%.0f\n", net->weight.item<double>(),
              net->bias.item<double>(), scaler.state().overflows, std::log2(scaler.state().scale));
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("mixed_precision", train, argc, argv);
}
