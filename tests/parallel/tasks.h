#pragma once
// Nets, inputs and a loss that are the same in every rank, thread and process.

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/models/build/build_model.h"

namespace lockstep::testing {

using torch::Tensor;

class Wrapped final : public Model {
 public:
  explicit Wrapped(torch::nn::Sequential net) : net_(register_module("net", net)) {}
  Tensor forward(Tensor input) override { return net_->forward(std::move(input)); }

 private:
  torch::nn::Sequential net_;
};

struct Task {
  std::function<std::shared_ptr<Model>()> make;
  std::vector<int64_t> sample;  ///< Shape of one input.
};

inline Task mlp_task() {
  return {[] {
            return std::make_shared<Wrapped>(torch::nn::Sequential(
                torch::nn::Linear(600, 512), torch::nn::ReLU(), torch::nn::Linear(512, 300),
                torch::nn::Tanh(), torch::nn::Linear(300, 10)));
          },
          {600}};
}

inline Task resnet_task(const std::string& name, int64_t side) {
  return {[name] {
            return build_model(
                {.backbone = {.name = name, .stem = Stem::kCifar}, .head = {.num_classes = 10}});
          },
          {3, side, side}};
}

/// One seed gives one net: the generator belongs to the process, and ranks are its threads.
inline std::shared_ptr<Model> make_seeded(const Task& task, uint64_t seed, torch::Dtype dtype) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  torch::manual_seed(seed);
  auto net = task.make();
  net->to(dtype);
  return net;
}

/// `count` inputs that are the same in every thread and process.
inline Tensor inputs(const Task& task, int64_t count, int64_t step, torch::Dtype dtype) {
  std::vector<int64_t> shape = {count};
  shape.insert(shape.end(), task.sample.begin(), task.sample.end());
  const int64_t numel = c10::multiply_integers(shape);
  const Tensor at = torch::arange(numel, torch::kDouble) + 1000.0 * static_cast<double>(step);
  return (at * 12.9898).sin().mul(2).view(shape).to(dtype);
}

inline Tensor labels(int64_t count) {
  return torch::arange(count, torch::kLong).mul(7).remainder(10);
}

inline Tensor loss_of(const Tensor& logits, const Tensor& target) {
  return torch::nn::functional::cross_entropy(logits, target);
}

}  // namespace lockstep::testing
