// bench_gpu_step MODEL RANKS STEPS WARM: the time of a training step with DistributedDataParallel
// on CUDA device 0, which all ranks share. Prints one JSON object.

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

#include "bench/gpu/nets.h"
#include "lockstep/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;

void measure(const std::string& name, int steps, int warm) {
  auto world = lockstep::World::join();
  world.device = 0;
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(0);
  const auto model = lockstep::bench::make_gpu_model(name);
  const c10::Device device(at::kCUDA, 0);
  model.net->to(device);
  lockstep::DistributedDataParallel ddp(model.net, group);
  torch::optim::SGD optimizer(model.net->parameters(),
                              torch::optim::SGDOptions(0.01).momentum(0.9));
  const at::Tensor input = at::randn(model.input).to(device);
  const at::Tensor labels = at::randint(0, 10, {model.input[0]}, at::kLong).to(device);
  std::vector<double> times;
  for (int step = -warm; step < steps; ++step) {
    if (step == 0) group.barrier();
    torch::cuda::synchronize();
    const auto begin = Clock::now();
    ddp.zero_grad();
    at::cross_entropy_loss(ddp(input), labels).backward();
    optimizer.step();
    torch::cuda::synchronize();
    const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
    if (step >= 0) times.push_back(took.count());
  }
  group.barrier();
  if (world.rank != 0) return;
  std::sort(times.begin(), times.end());
  std::printf("%s\n", nlohmann::json{{"model", name},
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
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_gpu_step MODEL RANKS STEPS WARM\n");
    return 2;
  }
  const std::string name = argv[1];
  const int steps = std::max(1, std::atoi(argv[3])), warm = std::atoi(argv[4]);
  lockstep::spawn(std::atoi(argv[2]), [&](int) { measure(name, steps, warm); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_gpu_step", body, argc, argv);
}
