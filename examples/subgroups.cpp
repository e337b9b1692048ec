// Two teams of ranks train one net each, data parallel, in their own groups; then all ranks take
// the mean of the nets' outputs.
// lockstep run --nproc_per_node 4 -- subgroups

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

int train(int, char**) {
  lockstep::start_fork_server();  // loaded once per host; the ranks are forked from there
  auto world = lockstep::World::join();
  auto all = lockstep::ProcessGroup::create(world);
  const int team = world.rank % 2;
  auto group = *all.split(team);  // collective: every rank gives its team
  torch::manual_seed(team);
  torch::nn::Sequential net(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
  auto model = lockstep::DistributedDataParallel(net, group);
  torch::optim::Adam optimizer(net->parameters(), 0.02);
  const auto x = torch::linspace(-1, 1, 256).unsqueeze(1);
  const auto y = (3 * x).sin();
  const auto mine = torch::arange(group.rank(), 256, group.size());
  for (int step = 0; step < 300; ++step) {
    model.zero_grad();
    (model(x.index_select(0, mine)) - y.index_select(0, mine)).square().mean().backward();
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  const auto answer = net->forward(x);
  const auto error_of = [&](const torch::Tensor& said) {
    return (said - y).square().mean().item<double>();
  };
  if (group.rank() == 0) std::printf("team %d: error %.6f\n", team, error_of(answer));
  lockstep::all_reduce(all, answer, lockstep::ReduceOp::kAvg).wait();
  if (world.rank == 0) std::printf("together: error %.6f\n", error_of(answer));
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("subgroups", train, argc, argv);
}
