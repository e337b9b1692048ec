// Batch norm over ranks is batch norm over the joined batch. Ranks are threads.
#include "lockstep/sync_batch_norm.h"
#include "lockstep/parallel/sync_batch_norm_layers.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lockstep/collectives.h"
#include "lockstep/distributed_data_parallel.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;
using torch::Tensor;

Tensor doubles(const std::vector<double>& values, at::IntArrayRef sizes) {
  return torch::tensor(values, torch::kDouble).view(sizes);
}

void expect_near(const Tensor& value, const std::vector<double>& wanted, const char* what) {
  const Tensor expected = torch::tensor(wanted, torch::kDouble);
  EXPECT_TRUE(torch::allclose(value.detach().to(torch::kDouble).flatten(), expected, 0, 1e-8))
      << what << "\n"
      << value;
}

// Expected values from PyTorch 1.13 in float64; rank 1 has one sample.
TEST(SyncBatchNorm, ComputesWhatPyTorchComputes) {
  run_rank_threads(2, [](World world) {
    SyncBatchNorm norm(2, ProcessGroup::create(world));
    norm->to(torch::kDouble);
    {
      const torch::NoGradGuard no_grad;
      norm->weight.copy_(doubles({1.5, .5}, {2}));
      norm->bias.copy_(doubles({.1, -.2}, {2}));
    }
    const bool first = world.rank == 0;
    const Tensor x =
        (first ? doubles({1, 2, 3, -1, 5, .5}, {3, 2}) : doubles({2, 4}, {1, 2})).requires_grad_();
    const Tensor dy = first ? doubles({1, 0, .25, 1, -.5, 2}, {3, 2}) : doubles({2, -1}, {1, 2});
    const Tensor y = norm->forward(x);
    y.backward(dy);
    expect_near(norm->running_mean, {.275, .1375}, "running mean");
    expect_near(norm->running_var, {1.1916666666666667, 1.35625}, "running variance");
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
    if (first) {
      expect_near(y, {-1.67481988, -.03106591, .3535457, -.84194957, 2.38191127, -.43650774}, "y");
      expect_near(x.grad(), {-.55779653, -.05183756, -.31874373, -.18142967, -.07969093, .28880822},
                  "dx");
      expect_near(norm->weight.grad(), {-1.90159273, -2.22993009}, "dgamma");
      expect_near(norm->bias.grad(), {.75, 3}, "dbeta");
    } else {
      expect_near(y, {-.66063709, .50952321}, "y");
      expect_near(x.grad(), {.9562312, -.055541}, "dx");
      expect_near(norm->weight.grad(), {-1.01418279, -1.41904642}, "dgamma");
      expect_near(norm->bias.grad(), {2, -1}, "dbeta");
    }
  });
}

/// (7, 3, 2, 2), the same on every rank.
Tensor joined_images(torch::Dtype dtype) {
  return (torch::arange(84, torch::kDouble) * 12.9898)
      .sin()
      .mul(2)
      .add(0.5)
      .view({7, 3, 2, 2})
      .to(dtype);
}

struct Outcome {
  Tensor y, dx, dweight, dbias, mean, var;
};

template <class Norm>
Outcome run_norm(Norm& norm, const Tensor& images) {
  const Tensor x = images.detach().clone().requires_grad_();
  const Tensor y = norm->forward(x);
  (y * x.detach().cos()).sum().backward();
  return {y.detach(),        x.grad(),           norm->weight.grad(),
          norm->bias.grad(), norm->running_mean, norm->running_var};
}

// Batches of different sizes, one of them empty.
TEST(SyncBatchNorm, EqualsBatchNormOfTheJoinedBatch) {
  for (const auto& [dtype, tolerance] : {std::pair(torch::kDouble, 1e-12), {torch::kFloat, 2e-5}}) {
    const Tensor images = joined_images(dtype);
    torch::nn::BatchNorm2d plain(3);
    plain->to(dtype);
    const Outcome wanted = run_norm(plain, images);
    const std::vector<int64_t> begin = {0, 2, 2, 7};  // rank 1 has none
    std::vector<Outcome> got(3);
    run_rank_threads(3, [&, type = dtype](World world) {
      SyncBatchNorm norm(3, ProcessGroup::create(world));
      norm->to(type);
      const auto r = static_cast<size_t>(world.rank);
      got[r] = run_norm(norm, images.slice(0, begin[r], begin[r + 1]));
    });
    const auto expect_close = [limit = tolerance](const Tensor& a, const Tensor& b) {
      EXPECT_TRUE(torch::allclose(a, b, limit, limit)) << (a - b).abs().max();
    };
    expect_close(torch::cat({got[0].y, got[1].y, got[2].y}), wanted.y);
    expect_close(torch::cat({got[0].dx, got[1].dx, got[2].dx}), wanted.dx);
    expect_close(got[0].dweight + got[1].dweight + got[2].dweight, wanted.dweight);
    expect_close(got[0].dbias + got[1].dbias + got[2].dbias, wanted.dbias);
    for (const auto& outcome : got) {
      expect_close(outcome.mean, wanted.mean);
      expect_close(outcome.var, wanted.var);
      EXPECT_TRUE(outcome.mean.equal(got[0].mean)) << "between ranks";
      EXPECT_TRUE(outcome.var.equal(got[0].var)) << "between ranks";
    }
  }
}

// With and without running statistics, weight and bias.
TEST(SyncBatchNorm, TrainsWithWhatItHas) {
  for (const bool affine : {true, false}) {
    for (const bool tracks : {true, false}) {
      const auto options =
          torch::nn::BatchNormOptions(3).affine(affine).track_running_stats(tracks);
      torch::nn::BatchNorm2d plain(options);
      const Tensor images = joined_images(torch::kFloat).narrow(0, 0, 6);
      const Tensor x = images.clone().requires_grad_();
      const Tensor wanted = plain->forward(x);
      (wanted * images.cos()).sum().backward();
      run_rank_threads(2, [&](World world) {
        SyncBatchNorm norm(options, ProcessGroup::create(world));
        const auto own = [&](const Tensor& all) { return all.narrow(0, 3 * world.rank, 3); };
        const Tensor part = own(images).clone().requires_grad_();
        const Tensor y = norm->forward(part);
        (y * own(images).cos()).sum().backward();
        EXPECT_TRUE(torch::allclose(y, own(wanted), 1e-4, 1e-5));
        EXPECT_TRUE(torch::allclose(part.grad(), own(x.grad()), 1e-4, 1e-5));
      });
    }
  }
}

// bfloat16 is computed as float32, whatever the type of weight and statistics.
TEST(SyncBatchNorm, SixteenBitsAreRoundedOnceAtTheEnd) {
  const Tensor images = joined_images(torch::kBFloat16);
  torch::nn::BatchNorm2d plain(3);
  const Outcome wanted = run_norm(plain, images.to(torch::kFloat));
  for (const bool cast : {false, true}) {
    std::vector<Outcome> got(2);
    run_rank_threads(2, [&](World world) {
      SyncBatchNorm norm(3, ProcessGroup::create(world));
      if (cast) norm->to(torch::kBFloat16);
      got[static_cast<size_t>(world.rank)] =
          run_norm(norm, world.rank == 0 ? images.slice(0, 0, 3) : images.slice(0, 3));
    });
    const Tensor y = torch::cat({got[0].y, got[1].y});
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
    EXPECT_TRUE(torch::allclose(y.to(torch::kFloat), wanted.y, 0.005, 1e-4));
    EXPECT_TRUE(torch::allclose(got[1].mean.to(torch::kFloat), wanted.mean, cast ? 0.005 : 1e-5));
    EXPECT_EQ(got[0].dx.scalar_type(), torch::kBFloat16);
    EXPECT_EQ(got[0].dweight.scalar_type(), cast ? torch::kBFloat16 : torch::kFloat);
  }
}

/// Gradients compared with differences: all ranks vary each element of each rank's input in turn.
TEST(SyncBatchNorm, GradientsAreTheSlopesOfTheJoinedLoss) {
  run_rank_threads(3, [](World world) {
    auto group = ProcessGroup::create(world);
    SyncBatchNorm norm(2, group);
    norm->to(torch::kDouble);
    const std::vector<int64_t> rows = {2, 0, 3};
    const auto own = rows[static_cast<size_t>(world.rank)];
    const Tensor x = ((torch::arange(own * 2, torch::kDouble) + 3.0 * world.rank) * 1.7)
                         .sin()
                         .view({own, 2})
                         .requires_grad_();
    const Tensor y = norm->forward(x);
    const Tensor factor = x.detach().cos();
    (y * y * factor + y).sum().backward();
    const auto loss_at = [&](const Tensor& at) {
      const torch::NoGradGuard no_grad;
      const Tensor out = norm->forward(at);
      Tensor loss = (out * out * factor + out).sum();
      all_reduce(group, loss, ReduceOp::kSum).wait();
      return loss.item<double>();
    };
    constexpr double kStep = 1e-5;
    for (int rank = 0; rank < world.size; ++rank) {
      for (int64_t k = 0; k < rows[static_cast<size_t>(rank)] * 2; ++k) {
        const auto stepped = [&](double by) {
          Tensor at = x.detach().clone();
          if (rank == world.rank) at.view(-1)[k] += by;
          return loss_at(at);
        };
        const double slope = (stepped(kStep) - stepped(-kStep)) / (2 * kStep);
        if (rank != world.rank) continue;
        EXPECT_NEAR(x.grad().view(-1)[k].item<double>(), slope, 1e-8);
      }
    }
  });
}

TEST(SyncBatchNorm, EvaluatesWithRunningStatistics) {
  run_rank_threads(2, [](World world) {
    SyncBatchNorm norm(3, ProcessGroup::create(world));
    torch::nn::BatchNorm2d plain(3);
    norm->eval();
    plain->eval();
    if (world.rank == 1) return;  // nothing is communicated
    const Tensor images = joined_images(torch::kFloat);
    EXPECT_TRUE(norm->forward(images).equal(plain->forward(images)));
  });
}

// Without them it takes the statistics of its own batch, as BatchNorm does.
TEST(SyncBatchNorm, EvaluatesAloneWithoutRunningStatisticsToo) {
  const auto options = torch::nn::BatchNormOptions(3).track_running_stats(false);
  run_rank_threads(2, [&](World world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(5)});
    SyncBatchNorm norm(options, group);
    const auto converted =
        std::make_shared<torch::nn::SequentialImpl>(torch::nn::BatchNorm2d(options));
    EXPECT_EQ(convert_sync_batchnorm(*converted, group), 1);
    torch::nn::BatchNorm2d plain(options);
    norm->eval();
    converted->eval();
    plain->eval();
    const Tensor images = joined_images(torch::kFloat).narrow(0, 3 * world.rank, 3);
    const Tensor alone = plain->forward(images);
    if (world.rank == 0) {  // nothing is communicated
      EXPECT_TRUE(norm->forward(images).equal(alone));
      EXPECT_TRUE(converted->forward(images).equal(alone));
    }
    converted->train();
    const Tensor wanted = plain->forward(joined_images(torch::kFloat).narrow(0, 0, 6));
    EXPECT_TRUE(torch::allclose(converted->forward(images), wanted.narrow(0, 3 * world.rank, 3),
                                1e-4, 1e-5));
  });
}

TEST(SyncBatchNorm, AveragesOverAllBatchesWithoutMomentum) {
  run_rank_threads(2, [](World world) {
    SyncBatchNorm norm(torch::nn::BatchNormOptions(1).momentum(c10::nullopt),
                       ProcessGroup::create(world));
    for (int step = 0; step < 2; ++step)
      norm->forward(torch::full({2, 1}, 1.0F + step + world.rank));
    EXPECT_FLOAT_EQ(norm->running_mean.item<float>(), 2);  // of 1.5 and 2.5
  });
}

TEST(SyncBatchNormErrors, OneValueInAllIsTooFewOnEveryRank) {
  run_rank_threads(2, [](World world) {
    SyncBatchNorm norm(2, ProcessGroup::create(world));
    const Error error = error_of([&] { norm->forward(torch::ones({1 - world.rank, 2})); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("at least 2 values"), std::string::npos);
    norm->forward(torch::ones({1, 2}));  // the group still works
    const Error shape = error_of([&] { norm->forward(torch::ones({1, 3})); });
    EXPECT_NE(std::string(shape.what()).find("takes (N, 2, ...)"), std::string::npos);
  });
}

/// Typed members, a Sequential, norms of two kinds.
struct NetImpl : torch::nn::Module {
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 4, 2)};
  torch::nn::BatchNorm2d norm{4};
  torch::nn::Sequential head{torch::nn::Linear(4, 5), torch::nn::BatchNorm1d(5), torch::nn::Tanh(),
                             torch::nn::Linear(5, 1)};
  NetImpl() {
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("head", head);
  }
  Tensor forward(const Tensor& x) { return head->forward(norm(conv(x)).flatten(1)); }
};
TORCH_MODULE(Net);

Net seeded_net() {
  static std::mutex one_at_a_time;  // the process has one seed
  const std::lock_guard lock(one_at_a_time);
  torch::manual_seed(3);
  Net net;
  net->to(torch::kDouble);
  return net;
}

TEST(ConvertSyncBatchNorm, TrainsAnyModuleAsOneProcessWouldOnTheJoinedBatch) {
  const Tensor images = joined_images(torch::kDouble).slice(0, 0, 6);
  Net reference = seeded_net();
  reference->forward(images).square().mean().backward();
  run_rank_threads(2, [&](World world) {
    Net net = seeded_net();
    auto group = ProcessGroup::create(world);
    auto model = DistributedDataParallel(net, group);
    EXPECT_EQ(convert_sync_batchnorm(*net, group), 2);
    model(images.narrow(0, 3 * world.rank, 3)).square().mean().backward();
    const auto ours = net->named_parameters(), theirs = reference->named_parameters();
    for (const auto& item : theirs) {
      EXPECT_TRUE(torch::allclose(ours[item.key()].grad(), item.value().grad(), 1e-10, 1e-12))
          << item.key();
    }
    const auto buffers = net->named_buffers();
    for (const auto& item : reference->named_buffers()) {
      EXPECT_TRUE(torch::allclose(buffers[item.key()].to(torch::kDouble),
                                  item.value().to(torch::kDouble), 1e-12, 1e-12))
          << item.key();
    }
  });
  Net other = seeded_net();  // a layer that was not converted, in the same process
  other->forward(images).square().mean().backward();
  EXPECT_FALSE(other->norm->weight.grad().equal(torch::zeros({4}, torch::kDouble)));
}

// As with a device, whose backward has a thread of its own.
TEST(ConvertSyncBatchNorm, TheTimeOfItsCollectivesIsCountedInEveryThread) {
  run_rank_threads(2, [](World world) {
    Net net = seeded_net();
    const auto time = std::make_shared<CollectiveTime>();
    EXPECT_EQ(convert_sync_batchnorm(*net, ProcessGroup::create(world), time), 2);
    const auto loss =
        net->forward(joined_images(torch::kDouble).narrow(0, 3 * world.rank, 3)).sum();
    const double forward_s = time->seconds();
    EXPECT_GT(forward_s, 0);
    std::thread([&] { loss.backward(); }).join();
    EXPECT_GT(time->seconds(), forward_s);
  });
}

/// Segments of groups that are in this process's memory.
int64_t mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  int64_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:") != line.npos;
  return count;
}

TEST(ConvertSyncBatchNorm, TheLayersGroupEndsWithThem) {
  const auto before = mapped_segments();
  run_rank_threads(2, [&](World world) {
    Net net = seeded_net();
    {
      auto group = ProcessGroup::create(world);
      EXPECT_EQ(convert_sync_batchnorm(*net, group), 2);
      EXPECT_GT(mapped_segments(), before);
    }
    net->to(torch::kFloat);  // does not change the kind of the layers
    net->forward(joined_images(torch::kFloat).narrow(0, 3 * world.rank, 3)).sum().backward();
    EXPECT_GT(mapped_segments(), before);
  });
  EXPECT_EQ(mapped_segments(), before);
}

TEST(ConvertSyncBatchNorm, ANetWithoutBatchNormIsLeftAlone) {
  run_rank_threads(2, [](World world) {
    torch::nn::Sequential net(torch::nn::Linear(2, 2));
    EXPECT_EQ(convert_sync_batchnorm(*net, ProcessGroup::create(world)), 0);
  });
}

TEST(ConvertSyncBatchNorm, NamesALayerThatItCannotKnow) {
  run_rank_threads(1, [](World world) {
    torch::nn::Sequential net(
        torch::nn::Linear(2, 2),
        torch::nn::BatchNorm1d(
            torch::nn::BatchNormOptions(2).affine(false).track_running_stats(false)));
    auto group = ProcessGroup::create(world);
    const Error error = error_of([&] { convert_sync_batchnorm(*net, group); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("layer '1' has neither"), std::string::npos);
  });
}

}  // namespace
}  // namespace lockstep
