// Checks of tensors on a CUDA device: gpu_checks [NAME...]; without a name, all. The ranks of a
// check are processes that share device 0. Prints a JSON object a line; exit code 1 if a check
// fails, 2 without a device.

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <torch/cuda.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/comm/kernels/element_types.h"
#include "lockstep/lockstep.h"
#include "lockstep/tensor/device/dtype.h"
#include "lockstep/tensor/device/stream_order.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep::testing {
namespace {

using Clock = std::chrono::steady_clock;

const auto kCuda = c10::Device(at::kCUDA, 0);

/// Text that rank 0's process leaves for the parent.
char* const note = static_cast<char*>(
    ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));

void tell(const World& world, const std::string& text) {
  if (world.rank == 0) std::strncpy(note, text.c_str(), 4095);
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

ProcessGroup make(World world, const std::string& backend = "auto") {
  world.device = 0;
  return ProcessGroup::create(world, {.backend = backend, .timeout = std::chrono::seconds(60)});
}

bool equal_or_nan(const at::Tensor& a, const at::Tensor& b) {
  return a.is_floating_point() ? a.allclose(b, 0, 0, /*equal_nan=*/true) : a.equal(b);
}

/// Every type and reduction by way of the host gives the bits of the same tensors on the CPU.
void host_collectives(const World& world) {
  auto group = make(world);
  require(group.backend() == "native", "the back end is " + group.backend());
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const at::Tensor own =
        at::arange(1, 1001).add(world.rank).remainder(7).to(to_scalar_type(dtype));
    for (int k = 0; k < kNumReduceOps; ++k) {
      const auto op = static_cast<ReduceOp>(k);
      if (!can_reduce(dtype, op)) continue;
      const at::Tensor here = own.clone(), there = own.to(kCuda);
      all_reduce(group, here, op).wait();
      all_reduce(group, there, op).wait();
      require(equal_or_nan(there.cpu(), here),
              fmt::format("all_reduce of {} by {}", to_string(dtype), to_string(op)));
    }
    const at::Tensor moved = own.to(kCuda);
    broadcast(group, moved, 1).wait();
    const at::Tensor all = at::zeros({2000}, own.options()).to(kCuda);
    all_gather(group, own.to(kCuda), all).wait();
    require(moved.equal(all.narrow(0, 1000, 1000)), "broadcast and all_gather differ");
    const at::Tensor turned = at::zeros({1000}, own.options()).to(kCuda);
    all_to_all(group, own.to(kCuda), turned).wait();
    require(turned.narrow(0, 500 * world.rank, 500)
                .equal(own.to(kCuda).narrow(0, 500 * world.rank, 500)),
            "all_to_all");
  }
}

/// With one rank every collective is the identity; what runs is NCCL.
void nccl_of_one_rank(const World& world) {
  auto group = make(world, "c10d:nccl");
  require(group.device() == "cuda:0", "the device is " + group.device());
  int calls = 0;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const at::Tensor in = at::arange(1000).remainder(2).to(to_scalar_type(dtype)).to(kCuda);
    for (int k = 0; k < kNumReduceOps; ++k) {
      const auto op = static_cast<ReduceOp>(k);
      if (!can_reduce(dtype, op)) continue;
      const at::Tensor sum = in.clone(), part = at::zeros_like(in);
      all_reduce(group, sum, op).wait();
      reduce_scatter(group, in, part, op).wait();
      require(sum.equal(in) && part.equal(in),
              fmt::format("{} by {}", to_string(dtype), to_string(op)));
      calls += 2;
    }
    const at::Tensor moved = at::zeros_like(in), all = at::zeros_like(in);
    all_to_all(group, in, moved).wait();
    all_gather(group, in, all).wait();
    broadcast(group, all, 0).wait();
    require(moved.equal(in) && all.equal(in), "moves of " + std::string(to_string(dtype)));
    calls += 3;
  }
  tell(world, fmt::format("{} calls", calls));
}

/// NCCL takes one rank per device: Lockstep refuses two before NCCL does.
void nccl_of_two_ranks_on_one_gpu(const World& world) {
  const Error error = error_of([&] { make(world, "c10d:nccl"); });
  const std::string text = error.what();
  require(
      error.code() == ErrorCode::kInvalidArgument && text.find("have one CUDA device") != text.npos,
      text);
  tell(world, "refused: " + text.substr(0, 200));
}

/// Some milliseconds of the device's time, whose result is `value` everywhere.
at::Tensor heavy(double value) {
  at::Tensor x = at::full({2048, 2048}, 1.0, at::TensorOptions(kCuda));
  const at::Tensor mean = at::full({2048, 2048}, 1.0 / 2048, x.options());
  for (int i = 0; i < 30; ++i) x = x.matmul(mean);
  return x.mul(value);
}

/// Collectives take what the stream computes, though no thread waits for it, and later work sees
/// their result; tensors may be dropped at once.
void streams_under_load(const World& world) {
  for (const char* const backend : {"native", "c10d:nccl"}) {
    if (backend == std::string("c10d:nccl") && world.size > 1) continue;
    auto group = make(world, backend);
    heavy(1);
    torch::cuda::synchronize();
    double slowest_call = 0, device_time = 0;
    for (int step = 0; step < 30; ++step) {
      const c10::StreamGuard stream(side_stream(kCuda));
      const auto begin = Clock::now();
      Work work;
      at::Tensor kept = heavy(world.rank + 1 + step);
      {
        const at::Tensor dropped = kept.mul(2);
        all_reduce(group, dropped, ReduceOp::kSum, {.async = true});
        const auto called = Clock::now();
        work = all_reduce(group, kept, ReduceOp::kSum, {.async = true});
        slowest_call = std::max(
            slowest_call, std::chrono::duration<double, std::milli>(Clock::now() - called).count());
      }
      const at::Tensor garbage = at::full({2048, 2048}, -7.0, kept.options());
      work.wait();
      const at::Tensor after = kept.add(1);
      const double wanted = world.size * step + world.size * (world.size + 1) / 2.0 + 1;
      const auto [least, most] = after.aminmax();
      require(std::abs(least.item<double>() - wanted) < 1e-2 &&
                  std::abs(most.item<double>() - wanted) < 1e-2,
              fmt::format("{} step {}: {} to {} is not {}", backend, step, least.item<double>(),
                          most.item<double>(), wanted));
      device_time += std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / 30;
    }
    tell(world, fmt::format("{}: slowest call {:.2f} ms in steps of {:.2f} ms", backend,
                            slowest_call, device_time));
  }
}

torch::nn::Sequential small_net() {
  torch::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Linear(64, 256), torch::nn::ReLU(),
                            torch::nn::Linear(256, 8));
  net->to(kCuda);
  return net;
}

/// The weights after five steps on `rows` of one batch.
std::vector<at::Tensor> trained(torch::nn::Sequential net, const at::Tensor& rows,
                                const std::function<at::Tensor(const at::Tensor&)>& forward) {
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    forward(rows).square().mean().backward();
    optimizer.step();
  }
  return net->parameters();
}

/// Two ranks train as one process with both halves of the batch.
void ddp(const World& world) {
  auto group = make(world);
  torch::manual_seed(5);
  const at::Tensor batch = at::randn({128, 64}).to(kCuda);
  auto net = small_net();
  DistributedDataParallel model(net, group);
  const auto own = trained(net, batch.narrow(0, 64 * world.rank, 64),
                           [&](const at::Tensor& x) { return model(x); });
  auto alone = small_net();
  const auto whole = trained(alone, batch, [&](const at::Tensor& x) { return alone->forward(x); });
  for (size_t i = 0; i < own.size(); ++i) {
    require(own[i].allclose(whole[i], 1e-4, 1e-6), fmt::format("parameter {} is another", i));
    const at::Tensor theirs = own[i].detach().clone();
    broadcast(group, theirs, 0).wait();
    require(theirs.equal(own[i]), fmt::format("parameter {} differs between the ranks", i));
  }
}

int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6);
  }
  return 0;
}

/// Steps leave nothing behind, on the device or the host.
void memory(const World& world) {
  auto group = make(world);
  auto net = small_net();
  DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.01);
  const at::Tensor batch = at::randn({64, 64}).to(kCuda);
  const auto allocated = [] {
    torch::cuda::synchronize();
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].current;
  };
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      model.zero_grad();
      model(batch).square().mean().backward();
      optimizer.step();
      const at::Tensor loose = at::full({1 << 20}, 1.0, batch.options());
      all_reduce(group, loose, ReduceOp::kSum, {.async = true}).wait();
    }
    group.barrier();
    return allocated();
  };
  const int64_t before = steps(20);
  const int64_t resident = resident_kib();
  const int64_t after = steps(200);
  const int64_t grown = resident_kib() - resident;
  require(after == before,
          fmt::format("{} bytes on the device after 20 steps, {} after 220", before, after));
  require(grown < 32 * 1024, fmt::format("the host's memory grew by {} KiB in 200 steps", grown));
  tell(world, fmt::format("{} bytes on the device, {} KiB more on the host", after, grown));
}

/// float16 by autocast, with a scale that overflows at first: all ranks skip the same steps.
void mixed_precision(const World& world) {
  auto group = make(world);
  torch::nn::Linear net(1, 1);
  net->to(kCuda);
  DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.2);
  GradScaler scaler(group, {.dynamic = true, .init_scale = 0x1p30});
  const at::Tensor x = at::linspace(-1, 1, 256, at::TensorOptions(kCuda)).unsqueeze(1);
  const at::Tensor y = x.mul(3).sub(2);
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    const at::Tensor answer =
        forward_at(AmpLevel::kO1, x, [&](const at::Tensor& points) { return model(points); });
    scaler.scale(answer.sub(y).square().mean()).backward();
    scaler.step(optimizer);
    scaler.update();
  }
  const double slope = net->weight.item<double>(), offset = net->bias.item<double>();
  require(std::abs(slope - 3) < 0.05 && std::abs(offset + 2) < 0.05,
          fmt::format("y = {} x + {}", slope, offset));
  require(scaler.state().overflows > 0, "no step overflowed");
  tell(world, fmt::format("y = {:.3f} x + {:.3f}, {} steps left out", slope, offset,
                          scaler.state().overflows));
}

/// Five steps of `Ours` and `Libtorchs` on equal networks of 400 layers lead to weights that differ
/// by rounding alone. The text that comes back has the time of a step of each.
template <class Ours, class Libtorchs, class Options>
std::string compare_optimizers(const char* name, const Options& options) {
  std::vector<at::Tensor> ours, theirs;
  for (int i = 0; i < 400; ++i) {
    ours.push_back(at::randn({64, 16 + i % 3}, at::TensorOptions(kCuda)).set_requires_grad(true));
    theirs.push_back(ours.back().detach().clone().set_requires_grad(true));
  }
  Ours quick(ours, options);
  Libtorchs plain(theirs, options);
  const auto ms_of = [](torch::optim::Optimizer& optimizer) {
    torch::cuda::synchronize();
    const auto begin = Clock::now();
    optimizer.step();
    torch::cuda::synchronize();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  double quick_ms = 0, plain_ms = 0;  // of the last step
  for (int step = 0; step < 5; ++step) {
    for (size_t i = 0; i < ours.size(); ++i) {
      ours[i].mutable_grad() = at::randn_like(ours[i]);
      theirs[i].mutable_grad() = ours[i].grad().clone();
    }
    quick_ms = ms_of(quick);
    plain_ms = ms_of(plain);
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    require(ours[i].allclose(theirs[i], 1e-5, 1e-6),
            fmt::format("{}: parameter {} is another", name, i));
  }
  return fmt::format("{} {:.2f} ms, libtorch's {:.2f}", name, quick_ms, plain_ms);
}

void foreach_optimizers(const World& world) {
  using namespace torch::optim;
  const auto sgd = SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01);
  tell(world,
       compare_optimizers<ForeachSGD, SGD>("SGD", sgd) + "; " +
           compare_optimizers<ForeachAdam, Adam>("Adam", AdamOptions(0.01).weight_decay(0.01)) +
           "; " + compare_optimizers<ForeachAdamW, AdamW>("AdamW", AdamWOptions(0.01)));
}

struct Check {
  const char* name;
  int ranks;
  void (*body)(const World& world);
};
constexpr Check kChecks[] = {
    {"host_collectives", 2, host_collectives},
    {"nccl_of_one_rank", 1, nccl_of_one_rank},
    {"nccl_of_two_ranks_on_one_gpu", 2, nccl_of_two_ranks_on_one_gpu},
    {"streams_under_load", 2, streams_under_load},
    {"streams_under_load_nccl", 1, streams_under_load},
    {"ddp", 2, ddp},
    {"memory", 2, memory},
    {"mixed_precision", 2, mixed_precision},
    {"foreach_optimizers", 1, foreach_optimizers},
};

bool run(const Check& check) {
  note[0] = '\0';
  const auto begin = Clock::now();
  const auto ends = run_rank_processes({check.ranks}, check.body, std::chrono::seconds(90));
  const bool passed = ends == std::vector<int>(static_cast<size_t>(check.ranks), 0);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("%s\n", nlohmann::json{{"check", check.name},
                                     {"ranks", check.ranks},
                                     {"ok", passed},
                                     {"seconds", seconds},
                                     {"note", std::string(note)}}
                          .dump()
                          .c_str());
  std::fflush(stdout);
  return passed;
}

/// In a child: a process that has used CUDA cannot fork ranks that use it.
bool has_device() {
  return run_rank_processes(1, [](const World&) {
           require(at::hasCUDA() && torch::cuda::device_count() > 0,
                   "this machine has no CUDA device");
         }) == std::vector<int>{0};
}

int body(int argc, char** argv) {
  if (!has_device()) return 2;
  bool passed = true;
  for (const Check& check : kChecks) {
    bool chosen = argc == 1;
    for (int i = 1; i < argc; ++i) chosen |= check.name == std::string(argv[i]);
    if (chosen) passed &= run(check);
  }
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  return lockstep::run_main("gpu_checks", lockstep::testing::body, argc, argv);
}
