// Batch norm over the batches of all ranks: two ranks with half a batch each train like one rank
// with the whole batch. lockstep run --nproc_per_node 2 -- sync_batch_norm

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

int train(int, char**) {
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(1);
  const auto x = torch::randn({64, 2}) * 5 + 3;
  const auto y = x.sum(1, /*keepdim=*/true);
  torch::nn::Sequential net(torch::nn::BatchNorm1d(2), torch::nn::Linear(2, 1));
  const int layers = lockstep::convert_sync_batchnorm(*net, group);
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  const auto mine = torch::arange(world.rank, 64, world.size);
  double loss = 0;
  for (int step = 0; step < 50; ++step) {
    model.zero_grad();
    auto error = (model(x.index_select(0, mine)) - y.index_select(0, mine)).square().mean();
    error.backward();
    optimizer.step();
    loss = lockstep::global_mean(group, error.item<double>(), 1);
  }
  const auto mean = net->named_buffers()["0.running_mean"];
  if (world.rank != 0) return 0;
  std::printf("%d layer, running mean %.3f %.3f, loss %.4f\n", layers, mean[0].item<double>(),
              mean[1].item<double>(), loss);
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("sync_batch_norm", train, argc, argv);
}
