// A small classifier. single_process.cpp trains it in one process; five_lines.cpp differs in five
// lines and trains it on any number of processes: lockstep run --nproc_per_node 2 -- five_lines

#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/error.h"
#include "lockstep/lockstep.h"

/// Points on two intertwined spirals; the label says which one.
struct Spirals {
  torch::Tensor points;  // (n, 2)
  torch::Tensor labels;  // (n)

  explicit Spirals(int64_t n) {
    const auto t = torch::linspace(0.5, 3, n) * M_PI;
    labels = torch::arange(n) % 2;
    const auto angle = t + labels * M_PI;
    points = torch::stack({t * angle.cos(), t * angle.sin()}, 1) / 3 + 0.05 * torch::randn({n, 2});
  }
  int64_t size() const { return labels.size(0); }
};

struct NetImpl : torch::nn::Module {
  torch::nn::Linear first{2, 64}, second{64, 64}, last{64, 2};

  NetImpl() {
    register_module("first", first);
    register_module("second", second);
    register_module("last", last);
  }
  torch::Tensor forward(torch::Tensor x) { return last(second(first(x).relu()).relu()); }
};
TORCH_MODULE(Net);

int train(int, char**) {
  torch::manual_seed(1);
  const Spirals dataset(1024);
  Net net;
  auto world = lockstep::World::join();
  auto group = lockstep::ProcessGroup::create(world);
  auto model = lockstep::DistributedDataParallel(net, group);
  auto sampler = lockstep::DistributedSampler(dataset.size(), world);
  torch::optim::Adam optimizer(net->parameters(), 0.005);
  for (int epoch = 0; epoch < 40; ++epoch) {
    sampler.set_epoch(epoch);
    for (const auto& batch : torch::tensor(sampler.indices()).split(32)) {
      const auto scores = model(dataset.points.index_select(0, batch));
      const auto loss = torch::cross_entropy_loss(scores, dataset.labels.index_select(0, batch));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
  }
  const auto scores = net(dataset.points);
  const auto loss = torch::cross_entropy_loss(scores, dataset.labels).item<double>();
  const auto right = (scores.argmax(1) == dataset.labels).sum().item<int64_t>();
  std::printf("loss %.9f, right: %ld of %ld\n", loss, right, dataset.size());
  return 0;
}

int main(int argc, char** argv) {
  return lockstep::run_main("spirals", train, argc, argv);  // an error is one line and a status
}
