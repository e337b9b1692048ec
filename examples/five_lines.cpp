// A small classifier learns to which of two spirals a point belongs. plain.cpp is plain libtorch
// and trains in one process. five_lines.cpp differs in five lines and trains on any number of
// processes: lockstep run --nproc_per_node 2 -- five_lines

#include <torch/data.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdio>

#include "lockstep/lockstep.h"

/// Points on two intertwined spirals; the label is the number of the spiral.
struct Spirals : torch::data::Dataset<Spirals> {
  torch::Tensor points;  // (n, 2)
  torch::Tensor labels;  // (n)

  explicit Spirals(int64_t n) {
    const auto t = torch::linspace(0.5, 3, n) * M_PI;
    labels = torch::arange(n) % 2;
    const auto angle = t + labels * M_PI;
    points = torch::stack({t * angle.cos(), t * angle.sin()}, 1) / 3 + 0.05 * torch::randn({n, 2});
  }
  torch::data::Example<> get(size_t index) override {
    const auto row = static_cast<int64_t>(index);
    return {points[row], labels[row]};
  }
  torch::optional<size_t> size() const override { return labels.size(0); }
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

int main() {
  torch::manual_seed(1);
  Spirals dataset(1024);
  Net net;
  auto group = lockstep::ProcessGroup::create(lockstep::World::join());
  auto model = lockstep::DistributedDataParallel(net, group);
  lockstep::DataSampler sampler({1024, group.rank(), group.size()});
  auto loader = torch::data::make_data_loader(dataset.map(torch::data::transforms::Stack<>()),
                                              sampler, /*batch_size=*/32);
  torch::optim::Adam optimizer(model.parameters(), 0.005);
  for (int epoch = 0; epoch < 40; ++epoch) {
    sampler.set_epoch(epoch);
    for (const auto& batch : *loader) {
      const auto loss = torch::cross_entropy_loss(model.forward(batch.data), batch.target);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
  }
  const auto scores = net(dataset.points);
  const auto loss = torch::cross_entropy_loss(scores, dataset.labels).item<double>();
  const auto right = (scores.argmax(1) == dataset.labels).sum().item<int64_t>();
  std::printf("loss %.9f, right: %ld of 1024\n", loss, right);
}
