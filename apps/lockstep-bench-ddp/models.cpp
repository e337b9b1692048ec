#include "apps/lockstep-bench-ddp/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "apps/lockstep-bench-ddp/transformer.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/models/build_model.h"

namespace lockstep::bench {
namespace {

class Mlp final : public Model {
 public:
  Mlp(int64_t width, int layers) {
    for (int i = 0; i < layers; ++i) {
      net_->push_back(torch::nn::Linear(width, width));
      net_->push_back(torch::nn::ReLU());
    }
    net_->push_back(torch::nn::Linear(width, 10));
    register_module("net", net_);
  }
  at::Tensor forward(at::Tensor input) override { return net_->forward(std::move(input)); }

 private:
  torch::nn::Sequential net_;
};

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"resnet50", "mlp3m", "mlp50m", "transformer25m"};
  return names;
}

BenchModel make_model(const std::string& name) {
  if (name == "resnet50") {
    const ModelSpec spec{.backbone = {.name = "resnet50", .stem = Stem::kCifar},
                         .head = {.num_classes = 10}};
    return {build_model(spec), {32, 3, 32, 32}, 6, 2};
  }
  if (name == "mlp3m") return {std::make_shared<Mlp>(1024, 3), {64, 1024}, 150, 20};
  if (name == "mlp50m") return {std::make_shared<Mlp>(4096, 3), {16, 4096}, 12, 3};
  if (name == "transformer25m") {
    return {std::make_shared<Transformer<Model>>(12, 416, 8), {8, 32, 416}, 10, 2};
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("unknown model '{}'{}; known: {}", name,
                          did_you_mean(name, model_names()), fmt::join(model_names(), ", ")));
}

}  // namespace lockstep::bench
