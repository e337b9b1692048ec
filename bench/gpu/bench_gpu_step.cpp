// bench_gpu_step MODEL MODE RANKS STEPS WARM [OPTIMIZER]: the time of a training step on CUDA
// device 0, which all ranks share. MODE: `ddp` trains with DistributedDataParallel, `independent`
// without communication. OPTIMIZER: `foreach` (default) is Lockstep's SGD, which updates lists of
// tensors as PyTorch's does; `libtorch` is that of libtorch. Prints one JSON object.

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
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/gpu/nets.h"
#include "lockstep/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::string model, mode;
  int ranks = 0, steps = 0, warm = 0;
  bool foreach = true;
};

std::unique_ptr<torch::optim::Optimizer> make_sgd(const torch::nn::Module& net, bool foreach) {
  const auto options = torch::optim::SGDOptions(0.01).momentum(0.9);
  if (foreach) return std::make_unique<lockstep::ForeachSGD>(net.parameters(), options);
  return std::make_unique<torch::optim::SGD>(net.parameters(), options);
}

void measure(const Settings& settings) {
  auto world = lockstep::World::join();
  world.device = 0;
  auto group = lockstep::ProcessGroup::create(world);
  torch::manual_seed(0);
  const auto model = lockstep::bench::make_gpu_model(settings.model);
  const c10::Device device(at::kCUDA, 0);
  model.net->to(device);
  std::optional<lockstep::DistributedDataParallel<std::shared_ptr<lockstep::bench::Net>>> ddp;
  if (settings.mode == "ddp") ddp.emplace(model.net, group);
  const auto optimizer = make_sgd(*model.net, settings.foreach);
  const at::Tensor input = at::randn(model.input).to(device);
  const at::Tensor labels = at::randint(0, 10, {model.input[0]}, at::kLong).to(device);
  std::vector<double> times;
  for (int step = -settings.warm; step < settings.steps; ++step) {
    if (step == 0) group.barrier();
    torch::cuda::synchronize();
    const auto begin = Clock::now();
    ddp ? ddp->zero_grad() : optimizer->zero_grad();
    const at::Tensor output = ddp ? (*ddp)(input) : model.net->forward(input);
    at::cross_entropy_loss(output, labels).backward();
    optimizer->step();
    torch::cuda::synchronize();
    const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
    if (step >= 0) times.push_back(took.count());
  }
  group.barrier();
  if (world.rank != 0) return;
  std::sort(times.begin(), times.end());
  std::printf("%s\n", nlohmann::json{{"model", settings.model},
                                     {"mode", settings.mode},
                                     {"optimizer", settings.foreach ? "foreach" : "libtorch"},
                                     {"ranks", world.size},
                                     {"backend", group.backend()},
                                     {"batch", model.input[0]},
                                     {"steps", settings.steps},
                                     {"step_ms_min", times.front()},
                                     {"step_ms_p50", times[times.size() / 2]}}
                          .dump()
                          .c_str());
  std::fflush(stdout);
}

int body(int argc, char** argv) {
  const std::string mode = argc >= 6 ? argv[2] : "", optimizer = argc == 7 ? argv[6] : "foreach";
  if (argc > 7 || (mode != "ddp" && mode != "independent") ||
      (optimizer != "foreach" && optimizer != "libtorch")) {
    std::fprintf(stderr,
                 "usage: bench_gpu_step MODEL ddp|independent RANKS STEPS WARM "
                 "[foreach|libtorch]\n");
    return 2;
  }
  const Settings settings{argv[1],
                          mode,
                          std::atoi(argv[3]),
                          std::max(1, std::atoi(argv[4])),
                          std::atoi(argv[5]),
                          optimizer == "foreach"};
  lockstep::spawn(settings.ranks, [&](int) { measure(settings); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::run_main("bench_gpu_step", body, argc, argv);
}
