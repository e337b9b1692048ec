#include "apps/lockstep-bench-ddp/measure.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <sys/resource.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <chrono>
#include <functional>
#include <optional>

#include "apps/lockstep-bench-ddp/models.h"
#include "lockstep/base/literals.h"
#include "lockstep/comm_hook.h"
#include "lockstep/distributed_data_parallel.h"

namespace lockstep::bench {
namespace {

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
