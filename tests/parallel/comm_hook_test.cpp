// Communication hooks: the buckets that a user's hook receives, and the built-in hooks.
#include <gtest/gtest.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>

#include "lockstep/collectives.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/parallel/chunks.h"
#include "lockstep/parallel/power_sgd.h"
#include "tests/parallel/two_heads.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/support/recorded_calls.h"

namespace lockstep {
namespace {

using namespace testing;  // two_heads.h and ranks.h
using torch::Tensor;

/// The plain average, with a record of its buckets.
struct Recorder : CommHook {
  std::vector<GradientBucket> seen;
  std::vector<int> finished;

  std::function<void()> start(const GradientBucket& bucket, ProcessGroup& group) override {
    seen.push_back(bucket);
    Work work = all_reduce(group, bucket.flat, ReduceOp::kAvg, {.async = true});
    return [this, work, index = bucket.index]() mutable {
      work.wait();
      finished.push_back(index);
    };
  }
};

TEST(CommHook, IsGivenEveryBucketOnceInOrder) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    const auto hook = std::make_shared<Recorder>();
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         {.bucket_cap_mb = 1e-5, .comm_hook = hook});
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      hook->seen.clear();
      hook->finished.clear();
      model(input_of(world.rank), true, true).backward();
      expect_near(net->a->weight.grad(), {1.2F, 2.4F, 1.5F, 3}, "a.weight");
      std::vector<std::string> names;
      ASSERT_GT(hook->seen.size(), 1u);
      for (size_t i = 0; i < hook->seen.size(); ++i) {
        const GradientBucket& bucket = hook->seen[i];
        EXPECT_EQ(bucket.index, static_cast<int>(i));
        EXPECT_EQ(hook->finished[i], bucket.index);
        EXPECT_EQ(bucket.last, i + 1 == hook->seen.size());
        ASSERT_EQ(bucket.gradients.size(), bucket.names.size());
        double sum = 0;
        for (const Tensor& gradient : bucket.gradients) sum += gradient.sum().item<double>();
        EXPECT_NEAR(bucket.flat.sum().item<double>(), sum, 1e-5) << "zeros between gradients";
        names.insert(names.end(), bucket.names.begin(), bucket.names.end());
      }
      EXPECT_EQ(names.size(), 6u);
    }
  });
}

/// Bytes of this process's mappings of memory files, which groups share.
int64_t shared_bytes() {
  std::ifstream maps("/proc/self/maps");
  int64_t total = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:") == std::string::npos) continue;
    char* end = nullptr;
    const auto begin = std::strtoll(line.c_str(), &end, 16);
    total += std::strtoll(end + 1, nullptr, 16) - begin;
  }
  return total;
}

TEST(CommHook, StagingOfBucketsThatAreNoMoreIsGivenBack) {
  for (const char* name : {"fp16", "bf16", "int8"}) {
    run_rank_threads(2, [&](World world) {
      auto group = ProcessGroup::create(world);
      const auto hook = make_comm_hook(name);
      const auto average = [&](int index) {
        GradientBucket bucket;
        bucket.index = index;
        bucket.flat = torch::ones({1 << 20});
        hook->start(bucket, group)();
      };
      average(0);
      group.barrier();
      const int64_t before = shared_bytes();
      group.barrier();
      average(1);
      average(2);
      group.barrier();
      EXPECT_GT(shared_bytes(), before) << name;
      group.barrier();
      hook->buckets_changed(1);
      group.barrier();
      EXPECT_EQ(shared_bytes(), before) << name;
      group.barrier();
    });
  }
}

/// Weights after a few steps of a net with small and large layers.
std::vector<Tensor> train_with(World world, const std::string& hook, bool find_unused) {
  static std::mutex one_at_a_time;  // the process has one seed
  std::unique_lock lock(one_at_a_time);
  torch::manual_seed(1);
  torch::nn::Linear wide(512, 600), narrow(600, 4);
  lock.unlock();
  torch::nn::Sequential net(wide, torch::nn::Functional(torch::tanh), narrow);
  auto model = DistributedDataParallel(
      net, ProcessGroup::create(world),
      {.find_unused_parameters = find_unused, .comm_hook = make_comm_hook(hook)});
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  const Tensor x = torch::linspace(-1, 1, 8 * 512).view({8, 512}) * (world.rank + 1);
  for (int step = 0; step < 4; ++step) {
    model.zero_grad();
    model.forward(x).square().mean().backward();
    optimizer.step();
  }
  std::vector<Tensor> weights;
  for (const auto& parameter : model.parameters()) weights.push_back(parameter.detach().clone());
  return weights;
}

/// Gradients of a step whose batch of 6 came as `parts`, the first ones under no_sync(). It is the
/// second step, because buckets are formed anew after the first.
std::vector<Tensor> gradients_of_parts(World world, const std::string& hook, int64_t parts) {
  torch::nn::Linear net(512, 600);
  const torch::NoGradGuard no_grad;
  net->weight.fill_(0.01);
  net->bias.fill_(0.1);
  auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                       {.comm_hook = make_comm_hook(hook)});
  const torch::AutoGradMode with_grad(true);
  const Tensor x = torch::linspace(-1, 1, 6 * 512).view({6, 512}) * (world.rank + 1);
  const auto loss_of = [&](const Tensor& rows) {
    return model.forward(rows).square().mean() / parts;
  };
  for (int step = 0; step < 2; ++step) {
    model.zero_grad();
    const auto batches = x.chunk(parts);
    {
      const auto hold = model.no_sync();
      for (size_t i = 0; i + 1 < batches.size(); ++i) loss_of(batches[i]).backward();
    }
    loss_of(batches.back()).backward();
  }
  return {net->weight.grad().clone(), net->bias.grad().clone()};
}

using States = std::vector<std::vector<Tensor>>;  // by rank

States train_on(int ranks, const std::string& hook, bool find_unused = false) {
  States states(static_cast<size_t>(ranks));
  run_rank_threads(ranks, [&](World world) {
    at::set_num_threads(1);
    states[static_cast<size_t>(world.rank)] = train_with(world, hook, find_unused);
  });
  return states;
}

void expect_close(const States& states, const States& exact, double tolerance, bool differs) {
  bool equal = true;
  for (size_t i = 0; i < exact[0].size(); ++i) {
    for (const auto& rank : states) EXPECT_TRUE(rank[i].equal(states[0][i])) << "between ranks";
    equal = equal && states[0][i].equal(exact[0][i]);
    const double off = ((states[0][i] - exact[0][i]).norm() / exact[0][i].norm()).item<double>();
    EXPECT_LE(off, tolerance) << "parameter " << i;
  }
  EXPECT_EQ(equal, !differs);
}

// Three micro-batches and one average: a hook is called once, for the sum of all three.
TEST(CommHook, IsGivenWhatMicroBatchesAccumulated) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    const auto hook = std::make_shared<Recorder>();
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.comm_hook = hook});
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      hook->seen.clear();
      hook->finished.clear();
      {
        const auto hold = model.no_sync();
        for (int i = 0; i < 2; ++i) model(input_of(world.rank), true, true).backward();
      }
      EXPECT_TRUE(hook->seen.empty()) << "in a micro-batch that is not averaged";
      model(input_of(world.rank), true, true).backward();
      EXPECT_EQ(hook->seen.size(), 1u);
      EXPECT_EQ(hook->finished.size(), 1u);
      expect_near(net->a->weight.grad(), {3.6F, 7.2F, 4.5F, 9}, "three times the average");
    }
  });
}

TEST(CommHook, TheFlightRecorderNamesTheBucket) {
  for (const auto& [hook, file] :
       std::vector<std::pair<std::string, std::string>>{{"none", "reducer.cpp"},
                                                        {"fp16", "comm_hook.cpp"},
                                                        {"int8", "int8_hook.cpp"},
                                                        {"powersgd", "power_sgd.cpp"}}) {
    run_rank_threads(2, [&hook = hook, &file = file](World world) {
      TwoHeads net;
      auto model =
          DistributedDataParallel(net, ProcessGroup::create(world),
                                  {.bucket_cap_mb = 1e-5, .comm_hook = make_comm_hook(hook)});
      const size_t before = recorded_calls(world.rank).size();
      model(input_of(world.rank), true, true).backward();
      std::set<std::string> buckets;
      const auto calls = recorded_calls(world.rank);
      for (size_t i = before; i < calls.size(); ++i) {
        const std::string& site = calls[i].site;
        const size_t number = site.find(" (bucket ");
        if (number == std::string::npos) continue;
        EXPECT_EQ(site.substr(0, site.find(':')), file);
        buckets.insert(site.substr(number));
      }
      EXPECT_GT(buckets.size(), 1u) << hook;
      EXPECT_TRUE(buckets.contains(" (bucket 0)") && buckets.contains(" (bucket 1)")) << hook;
    });
  }
}

TEST(CommHook, MicroBatchesGiveTheGradientsOfTheWholeBatch) {
  for (const auto& hook : comm_hook_names()) {
    States whole(2);
    States parts(2);
    run_rank_threads(2, [&](World world) {
      whole[static_cast<size_t>(world.rank)] = gradients_of_parts(world, "none", 1);
      parts[static_cast<size_t>(world.rank)] = gradients_of_parts(world, hook, 3);
    });
    for (size_t i = 0; i < whole[0].size(); ++i) {
      EXPECT_TRUE(parts[0][i].equal(parts[1][i])) << hook << " between ranks";
      const double off = ((parts[0][i] - whole[0][i]).norm() / whole[0][i].norm()).item<double>();
      EXPECT_LE(off, 1e-2) << hook << ", parameter " << i;
    }
  }
}

TEST(CommHook, SixteenBitTypesAreCloseAndEqualOnAllRanks) {
  for (const int ranks : {2, 3}) {
    const States exact = train_on(ranks, "none");
    expect_close(train_on(ranks, "fp16"), exact, 2e-3, true);
    expect_close(train_on(ranks, "bf16"), exact, 1e-2, true);
  }
}

// No copy into a bucket: a gradient that fills one is sent from the place where autograd wrote it.
TEST(CommHook, IsGivenAGradientThatFillsABucketWhereItWasComputed) {
  run_rank_threads(2, [](World world) {
    torch::nn::Linear net(600, 600);  // 1.4 MiB
    const auto hook = std::make_shared<Recorder>();
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         {.bucket_cap_mb = 1, .comm_hook = hook});
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      hook->seen.clear();
      model(torch::full({1, 600}, world.rank + 1.0)).sum().backward();
      EXPECT_TRUE(net->weight.grad().equal(torch::full({600, 600}, 1.5)));
      ASSERT_EQ(hook->seen.size(), 2u);
      for (const GradientBucket& bucket : hook->seen) {
        if (bucket.names[0] != "weight") continue;
        EXPECT_EQ(bucket.gradients.size(), 1u);
        EXPECT_EQ(bucket.flat.sizes(), at::IntArrayRef({360000}));
        EXPECT_EQ(bucket.flat.data_ptr(), net->weight.grad().data_ptr());
      }
    }
  });
}

/// One parameter with a given gradient.
struct Given : torch::nn::Module {
  Tensor w;
  explicit Given(const Tensor& value) : w(register_parameter("w", value)) {}
  Tensor forward(const Tensor& slope) { return (w * slope).sum(); }
};

/// By rank, of a bucket of several chunks.
std::vector<Tensor> averages_of_chunks(const std::string& hook, at::ScalarType type, int threads) {
  std::vector<Tensor> averages(3);
  run_rank_threads(3, [&](World world) {
    at::set_num_threads(threads);
    constexpr int64_t kElements = 2 * kChunkElements + 1001;
    auto net = std::make_shared<Given>(torch::zeros({kElements}, type));
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         {.comm_hook = make_comm_hook(hook)});
    const Tensor slope = torch::arange(kElements, type).mul_(0.01 * (world.rank + 1)).sin_();
    model(slope).backward();
    averages[static_cast<size_t>(world.rank)] = net->w.grad().clone();
  });
  return averages;
}

TEST(CommHook, AveragesBucketsOfManyChunksWithAnyNumberOfThreads) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const Tensor exact = averages_of_chunks("none", type, 1)[0];
    for (const std::string hook : {"fp16", "bf16", "int8"}) {
      const auto one = averages_of_chunks(hook, type, 1), three = averages_of_chunks(hook, type, 3);
      EXPECT_LT((one[0] - exact).abs().max().item<double>(), 0.01) << hook << " " << type;
      for (size_t rank = 0; rank < one.size(); ++rank) {
        EXPECT_TRUE(one[rank].equal(one[0])) << hook << " " << type;
        EXPECT_TRUE(three[rank].equal(one[0])) << hook << " " << type;
      }
    }
  }
}

TEST(CommHook, AComplexGradientKeepsBothItsParts) {
  for (const auto& hook : comm_hook_names()) {
    run_rank_threads(2, [&hook](World world) {
      const auto net = std::make_shared<Given>(torch::zeros({3}, torch::kComplexFloat));
      auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                           {.comm_hook = make_comm_hook(hook)});
      const auto slope = [](double real, double imaginary) {
        return torch::complex(torch::full({3}, real), torch::full({3}, imaginary));
      };
      torch::real(model(slope(1 + 2 * world.rank, 3 + 4 * world.rank))).backward();
      EXPECT_TRUE(torch::equal(net->w.grad(), slope(2, -5))) << hook << "\n" << net->w.grad();
    });
  }
}

TEST(CommHook, GoesTogetherWithUnusedParameters) {
  const States exact = train_on(2, "none");
  expect_close(train_on(2, "none", true), exact, 0, false);
  expect_close(train_on(2, "bf16", true), exact, 1e-2, true);
}

TEST(CommHook, SumsBeyondTheRangeOfFloat16DoNotOverflow) {
  struct Steep : torch::nn::Module {
    Tensor w = register_parameter("w", torch::ones({3}));
    Tensor forward(double slope) { return (w * slope).sum(); }
  };
  run_rank_threads(4, [](World world) {
    auto net = std::make_shared<Steep>();
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         {.comm_hook = make_comm_hook("fp16")});
    model(60000.0).backward();
    EXPECT_NEAR(net->w.grad()[0].item<float>(), 60000, 32);
  });
}

TEST(CommHook, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_EQ(make_comm_hook("none"), nullptr);
  const Error error = error_of([] { make_comm_hook("fp1"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("'fp1', did you mean 'fp16'?"), std::string::npos)
      << error.what();
}

void expect_mismatch(const std::function<std::shared_ptr<CommHook>(int rank)>& hook_of,
                     const std::string& text) {
  run_rank_threads(2, [&](World world) {
    const Error error = error_of([&] {
      DistributedDataParallel(TwoHeads(), ProcessGroup::create(world),
                              {.comm_hook = hook_of(world.rank)});
    });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  });
}

TEST(CommHook, RanksMustHaveTheSameOne) {
  expect_mismatch([](int rank) { return make_comm_hook(rank == 0 ? "fp16" : "bf16"); },
                  "rank 1 has comm_hook bf16 where rank 0 has comm_hook fp16");
  expect_mismatch([](int rank) { return make_comm_hook(rank == 0 ? "none" : "int8"); },
                  "rank 1 has comm_hook int8 where rank 0 has comm_hook none");
  expect_mismatch([](int rank) { return make_power_sgd_hook({.rank = 1 + rank}); },
                  "comm_hook powersgd (rank 2, start_step 1000, min_saving 2, seed 0) where");
  expect_mismatch(
      [](int rank) { return rank == 0 ? make_comm_hook("fp16") : std::make_shared<Recorder>(); },
      "Recorder where");
}

struct Broken : CommHook {
  std::function<void()> start(const GradientBucket&, ProcessGroup&) override {
    return [] { throw Error(ErrorCode::kCorrupt, "the hook's own"); };
  }
};

TEST(CommHook, ErrorsComeOutOfBackwardWithTheParametersNames) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         {.comm_hook = std::make_shared<Broken>()});
    const Tensor loss = model(input_of(world.rank), true, true);
    const Error error = error_of([&] { loss.backward(); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(
        std::string(error.what()).find("the hook's own (while averaging the gradients of 'c.bias'"),
        std::string::npos)
        << error.what();
  });
}

}  // namespace
}  // namespace lockstep
