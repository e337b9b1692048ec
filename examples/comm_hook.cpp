// A user-defined communication hook: gradients travel as float16, and each step adds the rounding
// error of the previous one instead of losing it. Each process sees only a part of the points of a
// line, and all fit the line together: lockstep run --nproc_per_node 2 -- comm_hook

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cstdio>
#include <map>

#include "lockstep/lockstep.h"

/// Sends gradient + rest, rounded; the rest is the rounding error.
class RoundedWithMemory : public lockstep::CommHook {
 public:
  std::function<void()> start(const lockstep::GradientBucket& bucket,
                              lockstep::ProcessGroup& group) override {
    const torch::NoGradGuard no_grad;
    const auto flat = bucket.flat;
    auto& rest = rests_[bucket.index];
    if (!rest.defined() || rest.numel() != flat.numel()) rest = torch::zeros_like(flat);
    const auto wanted = flat / group.size() + rest;
    const auto sent = wanted.to(torch::kHalf);
    rest = wanted - sent;
    auto work = lockstep::all_reduce(group, sent, lockstep::ReduceOp::kSum, {.async = true});
    return [work, flat, sent]() mutable {  // holds `sent` until the collective is done
      const torch::NoGradGuard no_grad_at_end;
      work.wait();
      flat.copy_(sent);
    };
  }

 private:
  std::map<int, torch::Tensor> rests_;  // by bucket
};

int train(int, char**) {
  lockstep::start_fork_server();  // loaded once per host; the ranks are forked from there
  torch::manual_seed(1);
  const auto x = torch::linspace(-1, 1, 256).unsqueeze(1);
  const auto y = 3 * x - 2;
  torch::nn::Linear net(1, 1);
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  auto model = lockstep::DistributedDataParallel(
      net, group, {.comm_hook = std::make_shared<RoundedWithMemory>()});
  torch::optim::SGD optimizer(net->parameters(), 0.5);
  const auto mine = torch::arange(world.rank, 256, world.size);
  for (int step = 0; step < 200; ++step) {
    model.zero_grad();
    (model(x.index_select(0, mine)) - y.index_select(0, mine)).square().mean().backward();
    optimizer.step();
  }
  if (world.rank != 0) return 0;
  const auto times = model.timings();
  std::printf("y = %.4f x + %.4f\n", net->weight.item<double>(), net->bias.item<double>());
  std::fprintf(stderr, "last step: forward %.3f ms, backward %.3f ms, of it waiting %.3f ms\n",
               times.forward, times.backward, times.comm_exposed);
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("comm_hook", train, argc, argv);
}
