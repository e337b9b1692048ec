// A loop with the usual parts: micro-batches whose gradients are averaged once, a limit for their
// norm, and progress for `lockstep ps`. lockstep run --nproc_per_node 2 -- training_loop

#include <ATen/Parallel.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

int train(int, char**) {
  auto world = lockstep::World::join();
  at::set_num_threads(world.threads);  // this rank's share of the host's cores
  auto group = lockstep::ProcessGroup::create(world);
  lockstep::expect_steps();
  torch::manual_seed(1);
  const auto x = torch::linspace(-1, 1, 256).unsqueeze(1);
  const auto y = 3 * x - 2;
  torch::nn::Linear net(1, 1);
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.3);
  auto sampler = lockstep::DistributedSampler(x.size(0), world);
  const auto loss_of = [&](const torch::Tensor& rows) {
    return (model(x.index_select(0, rows)) - y.index_select(0, rows)).square().mean();
  };
  const int64_t epochs = 20;
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    sampler.set_epoch(epoch);
    const auto batches = torch::tensor(sampler.indices()).chunk(8);
    for (const auto& batch : batches) {
      const auto micro = batch.chunk(2);
      model.zero_grad();
      {
        const auto hold = model.no_sync();  // adds up on this rank, sends nothing
        (loss_of(micro[0]) / 2).backward();
      }
      const auto loss = loss_of(micro[1]) / 2;
      loss.backward();  // averages the sum of both
      torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
      optimizer.step();
      lockstep::report_step({.step = ++step,
                             .total = epochs * static_cast<int64_t>(batches.size()),
                             .loss = 2 * loss.item<double>()});
    }
  }
  std::printf("y = %.4f x + %.4f after %ld steps\n", net->weight.item<double>(),
              net->bias.item<double>(), step);
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("training_loop", train, argc, argv);
}
