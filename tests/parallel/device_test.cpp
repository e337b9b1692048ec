// DistributedDataParallel of modules that are not on the CPU; ranks are threads.
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/utils.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/collectives.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/evaluation.h"
#include "lockstep/sync_batch_norm.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/tensor/support/guarded_device.h"
#ifdef LOCKSTEP_WITH_GLOO
#include "tests/tensor/support/gloo_as_device.h"
#endif

namespace lockstep {
namespace {

using torch::Tensor;

/// x a, then b or c, each a matrix; and a count of its runs. Made on its device, because libtorch
/// cannot move a module to a device that it does not know.
struct TwoMatricesImpl : torch::nn::Module {
  TwoMatricesImpl(torch::Device device, double start) {
    const auto matrix = [&](const char* name, std::vector<int64_t> sizes) {
      const Tensor values = torch::arange(sizes[0] * sizes[1], torch::kFloat).view(sizes) + start;
      return register_parameter(name, values.mul(0.1).to(device).detach());
    };
    a = matrix("a", {2, 3});
    b = matrix("b", {3, 1});
    c = matrix("c", {3, 1});
    runs = register_buffer("runs", torch::full({1}, start, torch::kFloat).to(device));
  }
  Tensor forward(const Tensor& x, bool use_b, bool use_c) {
    const Tensor hidden = x.matmul(a);
    Tensor out = hidden.sum() * 0.5;
    if (use_b) out = out + hidden.matmul(b).sum();
    if (use_c) out = out + hidden.matmul(c).sum();
    return out;
  }
  Tensor a, b, c, runs;
};
TORCH_MODULE(TwoMatrices);

torch::Device device_of(int rank, bool away) {
  return away ? testing::guarded_device(rank) : torch::Device(torch::kCPU);
}

Tensor on_cpu(const Tensor& tensor) {
  return tensor.defined() ? tensor.detach().cpu() : tensor;
}

/// The state of rank 0 after two steps: parameters, buffers and gradients.
std::vector<Tensor> trained(bool away, const DdpOptions& options, bool leave_out,
                            const std::string& backend = "auto") {
  std::vector<Tensor> result;
  testing::run_rank_threads(2, [&](World world) {
    const auto device = device_of(world.rank, away);
    TwoMatrices net(device, 1.0 + world.rank);
    auto model =
        DistributedDataParallel(net, ProcessGroup::create(world, {.backend = backend}), options);
    const Tensor x = (torch::ones({4, 2}) * (world.rank + 1)).to(device);
    for (int step = 0; step < 2; ++step) {
      model.zero_grad();
      const bool use_c = !leave_out || (step == 0 && world.rank == 1);
      model(x, true, use_c).backward();
      const torch::NoGradGuard no_grad;
      for (auto& parameter : net->parameters()) {
        if (parameter.grad().defined()) parameter.sub_(parameter.grad() * 0.1);
      }
    }
    if (world.rank != 0) return;
    for (const auto& parameter : net->parameters()) {
      EXPECT_EQ(parameter.device(), device);
      result.push_back(on_cpu(parameter));
      EXPECT_TRUE(!parameter.grad().defined() || parameter.grad().device() == device);
      result.push_back(on_cpu(parameter.grad()));
    }
    result.push_back(on_cpu(net->runs));
  });
  return result;
}

void expect_same(const std::vector<Tensor>& here, const std::vector<Tensor>& there) {
  ASSERT_EQ(here.size(), there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    ASSERT_EQ(here[i].defined(), there[i].defined()) << i;
    EXPECT_TRUE(!here[i].defined() || here[i].equal(there[i])) << i << here[i] << there[i];
  }
}

void expect_same_as_on_the_cpu(const DdpOptions& options, bool leave_out = false) {
  expect_same(trained(false, options, leave_out), trained(true, options, leave_out));
}

TEST(DdpDevice, TrainsWithTheBitsOfTheCpu) {
  expect_same_as_on_the_cpu({});
}

TEST(DdpDevice, UnusedParametersKeepTheirGradient) {
  DdpOptions options;
  options.find_unused_parameters = true;
  expect_same_as_on_the_cpu(options, true);
}

TEST(DdpDevice, HooksGetBucketsOnTheHost) {
  const auto with = [](const char* hook) {
    std::vector<Tensor> results;
    for (const bool away : {false, true}) {
      testing::run_rank_threads(2, [&](World world) {
        const auto device = device_of(world.rank, away);
        TwoMatrices net(device, 1);
        DdpOptions options;
        options.comm_hook = make_comm_hook(hook);
        auto model = DistributedDataParallel(net, ProcessGroup::create(world), options);
        model((torch::ones({4, 2}) * (world.rank + 1)).to(device), true, true).backward();
        if (world.rank == 0) results.push_back(on_cpu(net->a.grad()));
      });
    }
    EXPECT_TRUE(results[0].equal(results[1])) << hook << results[0] << results[1];
  };
  with("bf16");
  with("int8");
}

/// Two lists of products, each on a device of its own, so that backward has two threads.
struct TwoTowersImpl : torch::nn::Module {
  explicit TwoTowersImpl(int first_device) {
    for (int tower = 0; tower < 2; ++tower) {
      const Tensor ones = torch::ones({4}).to(testing::guarded_device(first_device + tower));
      for (int i = 0; i < 16; ++i) {
        towers[tower].push_back(register_parameter(
            "of_" + std::to_string(tower) + "_" + std::to_string(i), ones.mul(1).detach()));
      }
    }
  }
  Tensor forward(const Tensor& x) {
    Tensor out = torch::zeros({1});
    for (size_t i = 0; i < towers[0].size(); ++i) {
      for (const auto& tower : towers) {
        out = out + (tower[i] * x.to(tower[i].device())).sum().cpu();
      }
    }
    return out;
  }
  std::array<std::vector<Tensor>, 2> towers;
};
TORCH_MODULE(TwoTowers);

/// The plain average, one bucket at a time. In the first bucket it waits for a second call.
struct OneAtATime : CommHook {
  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    if (inside.exchange(true)) overlapped = true;
    const auto enough = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (bucket.index == 0 && !overlapped && std::chrono::steady_clock::now() < enough) {
      std::this_thread::yield();
    }
    Work work = all_reduce(group, bucket.flat, ReduceOp::kAvg, {.async = true});
    inside = false;
    return [work]() mutable { work.wait(); };
  }
  std::atomic<bool> inside = false, overlapped = false;
};

TEST(DdpDevice, ParametersOfSeveralDevicesShareOnePass) {
  for (const bool hooked : {true, false}) {
    testing::run_rank_threads(2, [&](World world) {
      TwoTowers net(2 * world.rank);
      const auto hook = std::make_shared<OneAtATime>();
      DdpOptions options{.bucket_cap_mb = 1e-5};
      if (hooked) options.comm_hook = hook;
      auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
      auto model = DistributedDataParallel(net, group, options);
      for (int step = 0; step < (hooked ? 5 : 50); ++step) {
        model.zero_grad();
        model(torch::full({4}, 1.0 + world.rank)).backward();
        for (const auto& parameter : net->parameters()) {
          ASSERT_TRUE(parameter.grad().cpu().eq(1.5).all().item<bool>()) << step;
        }
      }
      EXPECT_FALSE(hook->overlapped);
    });
  }
}

TEST(DdpDevice, GathersRows) {
  testing::run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    const auto device = testing::guarded_device(world.rank);
    const Tensor rows = torch::full({world.rank + 1, 2}, world.rank, torch::kFloat).to(device);
    const Tensor all = gather_rows(group, rows);
    EXPECT_EQ(all.device(), device);
    EXPECT_TRUE(all.cpu().select(1, 0).equal(torch::tensor({0.0F, 1.0F, 1.0F})));
  });
}

#ifdef LOCKSTEP_WITH_GLOO

// The device is the CPU and Gloo reduces on it (gloo_as_device.h): a sum of two ranks has one
// order.
TEST(DdpDevice, GradientsStayOnTheDeviceThatTheGroupReducesOn) {
  testing::engines_made = 0;
  DdpOptions options;
  expect_same(trained(false, options, false), trained(false, options, false, "test:device"));
  EXPECT_EQ(testing::engines_made, 2);
  options.find_unused_parameters = true;
  expect_same(trained(false, options, true), trained(false, options, true, "test:device"));
  EXPECT_EQ(testing::engines_made, 4);
}

TEST(DdpDevice, HooksReduceOnTheHostAlsoThen) {
  const auto hooked = [](const char* backend) {
    std::vector<Tensor> results;
    testing::run_rank_threads(2, [&](World world) {
      TwoMatrices net(torch::kCPU, 1);
      DdpOptions options;
      options.comm_hook = make_comm_hook("bf16");
      auto model =
          DistributedDataParallel(net, ProcessGroup::create(world, {.backend = backend}), options);
      model(torch::full({4, 2}, world.rank + 1.3), true, true).backward();
      if (world.rank == 0) results = {net->a.grad(), net->b.grad()};
    });
    return results;
  };
  expect_same(hooked("native"), hooked("test:device"));
}

/// Gradients that native would compute in shared memory; accumulated over two passes.
TEST(DdpDevice, LargeGradientsAreAveragedThereToo) {
  std::vector<Tensor> gradients;
  for (const char* backend : {"native", "test:device"}) {
    testing::run_rank_threads(2, [&](World world) {
      torch::nn::Linear net(512, 512);
      const torch::NoGradGuard no_grad;
      net->weight.fill_(0.5);
      net->bias.fill_(0.5);
      const torch::AutoGradMode with_grad(true);
      auto model = DistributedDataParallel(net, ProcessGroup::create(world, {.backend = backend}));
      const Tensor x = torch::full({2, 512}, world.rank + 1.0);
      {
        const auto hold = model.no_sync();
        model(x).sum().backward();
      }
      for (int pass = 0; pass < 2; ++pass) model(x).sum().backward();
      if (world.rank == 0) gradients.push_back(net->weight.grad().clone());
    });
  }
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
}

#endif

/// Output, gradient of the input and running mean on rank 0 of a converted layer.
std::vector<Tensor> normed(bool away) {
  std::vector<Tensor> result;
  testing::run_rank_threads(2, [&](World world) {
    const auto device = device_of(world.rank, away);
    torch::nn::BatchNorm1d layer(3);
    const torch::NoGradGuard no_grad;
    for (Tensor* own : {&layer->weight, &layer->bias, &layer->running_mean, &layer->running_var}) {
      *own = own->detach().to(device);
    }
    const auto group = ProcessGroup::create(world);
    EXPECT_EQ(convert_sync_batchnorm(*layer, group), 1);
    const torch::AutoGradMode with_grad(true);
    const Tensor x = (torch::arange(12, torch::kFloat).view({4, 3}) * (world.rank + 1)).to(device);
    x.set_requires_grad(true);
    const Tensor y = layer(x);
    (y * y.detach()).sum().backward();
    if (world.rank == 0) result = {on_cpu(y), on_cpu(x.grad()), on_cpu(layer->running_mean)};
  });
  return result;
}

TEST(DdpDevice, BatchNormIsSynchronisedAsOnTheCpu) {
  const auto here = normed(false);
  const auto away = normed(true);
  ASSERT_EQ(here.size(), away.size());
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_TRUE(here[i].allclose(away[i])) << i << here[i] << away[i];
  }
}

TEST(DdpDevice, VirtualRanksAreForTheCpu) {
  testing::run_rank_threads(2, [](World world) {
    TwoMatrices net(testing::guarded_device(world.rank), 1);
    auto group = ProcessGroup::create(world);
    DdpOptions options;
    options.virtual_ranks = 2;
    const Error error = error_of([&] { DistributedDataParallel(net, group, options); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("parameter 'a' is on privateuseone:"),
              std::string::npos)
        << error.what();
  });
}

}  // namespace
}  // namespace lockstep
