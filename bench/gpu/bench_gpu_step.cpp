// bench_gpu_step MODEL MODE RANKS STEPS WARM: the time of a training step on CUDA device 0, which
// all ranks share. MODE: `ddp` trains with DistributedDataParallel, `independent` without
// communication. Prints one JSON object.

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/cuda.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/gpu/nets.h"
#include "lockstep/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;

void measure(const std::string& name, const std::string& mode, int steps, int warm) {
  auto world = lockstep::World::join();
  world.device = 0;
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(0);
  const auto model = lockstep::bench::make_gpu_model(name);
  const c10::Device device(at::kCUDA, 0);
  model.net->to(device);
  std::optional<lockstep::DistributedDataParallel<std::shared_ptr<lockstep::bench::Net>>> ddp;
  if (mode == "ddp") ddp.emplace(model.net, group);
  torch::optim::SGD optimizer(model.net->parameters(),
                              torch::optim::SGDOptions(0.01).momentum(0.9));
  const at::Tensor input = at::randn(model.input).to(device);
  const at::Tensor labels = at::randint(0, 10, {model.input[0]}, at::kLong).to(device);
  std::vector<double> times;
  for (int step = -warm; step < steps; ++step) {
    if (step == 0) group.barrier();
    torch::cuda::synchronize();
    const auto begin = Clock::now();
    ddp ? ddp->zero_grad() : optimizer.zero_grad();
    const at::Tensor output = ddp ? (*ddp)(input) : model.net->forward(input);
    at::cross_entropy_loss(output, labels).backward();
    optimizer.step();
    torch::cuda::synchronize();
    const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
    if (step >= 0) times.push_back(took.count());
  }
  group.barrier();
  if (world.rank != 0) return;
  std::sort(times.begin(), times.end());
  std::printf("%s\n", nlohmann::json{{"model", name},
                                     {"mode", mode},
                                     {"ranks", world.size},
                                     {"backend", group.backend()},
                                     {"batch", model.input[0]},
                                     {"steps", steps},
                                     {"step_ms_min", times.front()},
                                     {"step_ms_p50", times[times.size() / 2]}}
                          .dump()
                          .c_str());
  std::fflush(stdout);
}

int body(int argc, char** argv) {
  const std::string name = argc == 6 ? argv[1] : "", mode = argc == 6 ? argv[2] : "";
  if (mode != "ddp" && mode != "independent") {
    std::fprintf(stderr, "usage: bench_gpu_step MODEL ddp|independent RANKS STEPS WARM\n");
    return 2;
  }
  const int steps = std::max(1, std::atoi(argv[4])), warm = std::atoi(argv[5]);
  lockstep::spawn(std::atoi(argv[3]), [&](int) { measure(name, mode, steps, warm); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_gpu_step", body, argc, argv);
}
