#include "apps/lockstep-bench-ddp/measure.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <chrono>
#include <memory>
#include <optional>

#include "apps/lockstep-bench-ddp/transformer.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"
#include "lockstep/comm_hook.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/error.h"
#include "lockstep/models/build/build_model.h"

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

struct BenchModel {
  std::shared_ptr<Model> net;
  std::vector<int64_t> input;  ///< Shape of one rank's batch; the first size is the batch.
  int steps = 0;               ///< Measured steps, by default.
  int warmup = 0;
};

/// resnet50: CIFAR stem, 32 images of 3x32x32. mlp3m: 3 x (1024 -> 1024, ReLU), then 10, batch 64.
/// mlp50m: the same with 4096, batch 16. transformer25m: 12 layers of 416 channels with 8 heads,
/// batch 8 of 32 tokens. Errors: kInvalidArgument with the nearest name.
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

using Ddp = DistributedDataParallel<std::shared_ptr<Model>>;

int64_t page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Runs warm-up and measured steps of `forward` over one batch.
void run_steps(const World& world, const BenchModel& model, const MeasureSpec& spec,
               std::optional<Ddp>& ddp, Measured& measured) {
  const at::Tensor input = at::randn(model.input);
  const at::Tensor labels = at::randint(0, 10, {model.input[0]}, at::kLong);
  auto parameters = model.net->parameters();
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.01).momentum(0.9));
  const auto step = [&] {
    for (auto& parameter : parameters) parameter.mutable_grad().reset();
    const auto pass = [&](int) {
      at::cross_entropy_loss(ddp ? ddp->forward(input) : model.net->forward(input), labels)
          .backward();
    };
    ddp ? ddp->for_each_virtual_rank(pass) : pass(0);
    optimizer.step();
  };
  const int warmup = spec.warmup < 0 ? model.warmup : spec.warmup;
  for (int i = 0; i < warmup; ++i) step();
  store_barrier(*world.store, "bench/start", world.rank, world.size, Deadline::after(300s));
  const int steps = spec.steps == 0 ? model.steps : spec.steps;
  const int64_t faults_before = page_faults();
  for (int i = 0; i < steps; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    step();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    measured.step_ms.push_back(took.count());
    measured.exposed_ms.push_back(ddp ? ddp->comm_exposed_ms() : 0);
  }
  measured.page_faults = static_cast<double>(page_faults() - faults_before) / steps;
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"resnet50", "mlp3m", "mlp50m", "transformer25m"};
  return names;
}

Measured measure(const World& world, const MeasureSpec& spec) {
  at::set_num_threads(1);
  torch::manual_seed(static_cast<uint64_t>(world.rank));
  const BenchModel model = make_model(spec.model);
  Measured measured;
  measured.batch = model.input[0];
  std::optional<Ddp> ddp;
  if (spec.distributed) {
    ddp.emplace(model.net, ProcessGroup::create(world),
                DdpOptions{.bucket_cap_mb = spec.bucket_cap_mb,
                           .virtual_ranks = spec.virtual_ranks,
                           .comm_hook = make_comm_hook(spec.comm_hook)});
    measured.parts = ddp->virtual_ranks().count;
  }
  run_steps(world, model, spec, ddp, measured);
  return measured;
}

}  // namespace lockstep::bench
