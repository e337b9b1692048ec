// A fixed number of virtual ranks, any number of ranks: the same bits. Ranks are threads.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <string>

#include "lockstep/distributed_data_parallel.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::HostLayout;
using testing::run_rank_threads;
using torch::Tensor;

/// Batch norm, a parameter in another type, and one large enough to be placed.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(600, 500));
    norm = register_module("norm", torch::nn::BatchNorm1d(500));
    last = register_module("last", torch::nn::Linear(500, 10));
    scale = register_parameter("scale", torch::ones({10}, torch::kDouble));
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      const Tensor at = torch::arange(parameter.numel(), torch::kDouble);
      parameter.copy_((at * 12.9898).sin().mul(0.3).view_as(parameter));
    }
  }
  Tensor forward(const Tensor& x) { return last(norm(first(x)).relu()) * scale; }

  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  Tensor scale;
};
TORCH_MODULE(Net);

Tensor loss_of(Net& net, DistributedDataParallel<Net>& model, int64_t step, int virtual_rank) {
  const Tensor at = torch::arange(4 * 600, torch::kDouble) + 5000. * step + 311. * virtual_rank;
  const Tensor x = (at * 78.233).sin().view({4, 600}).to(torch::kFloat);
  const Tensor y = torch::arange(4, torch::kLong).add(virtual_rank).remainder(10);
  EXPECT_EQ(model.module().ptr(), net.ptr());
  return torch::nn::functional::cross_entropy(model.forward(x), y);
}

struct Plan {
  int virtual_ranks = 8;
  int accumulation = 1;
  double bucket_cap_mb = 25;
};

/// Parameters and buffers of every rank after a few steps, one after the other.
std::vector<std::vector<Tensor>> train(const HostLayout& hosts, const Plan& plan) {
  std::vector<std::vector<Tensor>> states(8);
  run_rank_threads(hosts, [&](World world) {
    at::set_num_threads(1);
    Net net;
    auto model = DistributedDataParallel(
        net, ProcessGroup::create(world),
        {.bucket_cap_mb = plan.bucket_cap_mb, .virtual_ranks = plan.virtual_ranks});
    torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    for (int64_t step = 0; step < 4 * plan.accumulation; ++step) {
      const auto body = [&](int virtual_rank) {
        loss_of(net, model, step, virtual_rank).backward();
      };
      if ((step + 1) % plan.accumulation != 0) {
        const auto hold = model.no_sync();
        model.for_each_virtual_rank(body);
        continue;
      }
      model.for_each_virtual_rank(body);
      optimizer.step();
      model.zero_grad();
    }
    auto& state = states[static_cast<size_t>(world.rank)];
    for (const auto& tensor : net->parameters()) state.push_back(tensor.detach());
    for (const auto& tensor : net->buffers()) state.push_back(tensor);
  });
  return states;
}

void expect_same(const std::vector<std::vector<Tensor>>& wanted, const HostLayout& hosts,
                 const Plan& plan) {
  const auto states = train(hosts, plan);
  for (const auto& state : states) {
    for (size_t i = 0; i < state.size(); ++i) {
      EXPECT_TRUE(state[i].equal(wanted[0][i])) << "tensor " << i << ", " << hosts.size();
    }
  }
}

TEST(DdpVirtualRanks, BitsDoNotDependOnTheNumberOfRanksNorHosts) {
  const auto one = train({1}, {});
  ASSERT_TRUE(one[0][0].isfinite().all().item<bool>());
  for (const HostLayout& hosts :
       {HostLayout{2}, {4}, {8}, {1, 1}, {2, 2}, {1, 3}, {1, 1, 1, 1}, {3, 5}}) {
    expect_same(one, hosts, {});
  }
  expect_same(one, {2}, {.bucket_cap_mb = 0.01});
}

TEST(DdpVirtualRanks, AnyNumberOfThemOnAnyNumberOfRanksUpToTheirs) {
  for (const int virtual_ranks : {1, 2, 3, 4, 6, 8}) {
    const auto one = train({1}, {.virtual_ranks = virtual_ranks});
    for (int ranks = 2; ranks <= virtual_ranks; ++ranks) {
      expect_same(one, {ranks}, {.virtual_ranks = virtual_ranks});
    }
  }
  expect_same(train({1}, {.virtual_ranks = 1}), {1}, {.virtual_ranks = 0});
}

// Several buckets, and ranks on their own hosts.
TEST(DdpVirtualRanks, RanksThatDoNotHaveEquallyManyOnAnyHosts) {
  const auto one = train({1}, {});
  for (const HostLayout& hosts : {HostLayout{1, 2}, {1, 1, 1}, {3, 2}, {2, 2, 2}, {1, 6}}) {
    expect_same(one, hosts, {});
  }
  expect_same(one, {3}, {.bucket_cap_mb = 0.01});
  expect_same(one, {5}, {.bucket_cap_mb = 1});
}

TEST(DdpVirtualRanks, AccumulationKeepsVirtualRanksApart) {
  const auto one = train({1}, {.accumulation = 3});
  EXPECT_FALSE(one[0][0].equal(train({1}, {})[0][0]));
  for (const HostLayout& hosts : {HostLayout{2}, {8}, {2, 2}, {3}, {1, 4}, {7}}) {
    expect_same(one, hosts, {.accumulation = 3});
  }
}

// With one virtual rank per rank, gradients are those of the mode without virtual ranks; statistics
// are the mean's.
TEST(DdpVirtualRanks, GradientsAreTheMeanAndStatisticsToo) {
  run_rank_threads(2, [](World world) {
    at::set_num_threads(1);
    auto group = ProcessGroup::create(world);
    Net plain;
    auto without = DistributedDataParallel(plain, group);
    loss_of(plain, without, 0, world.rank).backward();
    Net net;
    auto model = DistributedDataParallel(net, group, {.virtual_ranks = 4});
    std::vector<Tensor> means;
    model.for_each_virtual_rank([&](int virtual_rank) {
      EXPECT_EQ(virtual_rank / 2, world.rank);
      EXPECT_EQ(net->norm->running_mean.sum().item<float>(), 0);
      loss_of(net, model, 0, virtual_rank % 2).backward();  // virtual ranks 0, 1, 0, 1
      means.push_back(net->norm->running_mean.clone());
    });
    EXPECT_TRUE(net->norm->running_mean.equal((means[0] + means[1]) / 2));
    EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), 1);
    for (size_t i = 0; i < plain->parameters().size(); ++i) {
      EXPECT_TRUE(net->parameters()[i].grad().equal(plain->parameters()[i].grad())) << i;
    }
  });
}

TEST(DdpVirtualRanks, ZeroGradForgetsWhatWasAccumulated) {
  for (const int ranks : {2, 3})
    run_rank_threads(ranks, [](World world) {
      at::set_num_threads(1);
      Net net;
      auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.virtual_ranks = 4});
      const auto body = [&](int virtual_rank) { loss_of(net, model, 0, virtual_rank).backward(); };
      model.for_each_virtual_rank(body);
      const Tensor wanted = net->last->weight.grad().clone();
      const Tensor statistics = net->norm->running_mean.clone();
      {
        const auto hold = model.no_sync();
        model.for_each_virtual_rank(body);
      }
      EXPECT_FALSE(net->last->weight.grad().defined());
      model.zero_grad();
      EXPECT_TRUE(net->norm->running_mean.equal(statistics));
      model.for_each_virtual_rank(body);
      EXPECT_TRUE(net->last->weight.grad().equal(wanted));
    });
}

// The body fails in each virtual rank in turn, alone and while gradients accumulate.
TEST(DdpVirtualRanks, AStepThatFailedCanBeDoneAgain) {
  for (const int ranks : {1, 2, 3}) {
    run_rank_threads(ranks, [](World world) {
      at::set_num_threads(1);
      Net net;
      auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.virtual_ranks = 4});
      const auto body = [&](int virtual_rank) { loss_of(net, model, 0, virtual_rank).backward(); };
      model.for_each_virtual_rank(body);
      const Tensor wanted = net->last->weight.grad().clone();
      const Tensor mean = net->norm->running_mean.clone(), start = torch::zeros_like(mean);
      const auto fails = [&](int at) {
        return [&, at](int virtual_rank) {
          const VirtualRankRange& own = model.virtual_ranks();
          if (virtual_rank - own.first == at % own.count) {
            model.forward(torch::ones({2, 600}));
            throw Error(ErrorCode::kCorrupt, "the body's own");
          }
          body(virtual_rank);
        };
      };
      for (int at = 0; at < 4; ++at) {
        {
          const torch::NoGradGuard no_grad;
          net->norm->running_mean.zero_();
          net->norm->running_var.fill_(1);
        }
        if (at % 2 == 1) {
          const auto hold = model.no_sync();
          model.for_each_virtual_rank(body);
          EXPECT_STREQ(error_of([&] { model.for_each_virtual_rank(fails(at)); }).what(),
                       "the body's own");
        } else {
          EXPECT_STREQ(error_of([&] { model.for_each_virtual_rank(fails(at)); }).what(),
                       "the body's own");
        }
        EXPECT_TRUE(net->norm->running_mean.equal(start)) << "as before the step";
        const auto outside = error_of([&] { model.forward(torch::ones({2, 600})); });
        EXPECT_NE(std::string(outside.what()).find("for_each_virtual_rank"), std::string::npos);
        model.zero_grad();
        model.for_each_virtual_rank([&](int virtual_rank) {
          model.zero_grad();  // does not affect earlier virtual ranks
          body(virtual_rank);
        });
        EXPECT_TRUE(net->last->weight.grad().equal(wanted)) << at;
        EXPECT_TRUE(net->norm->running_mean.equal(mean)) << at;
      }
    });
  }
}

TEST(DdpVirtualRanks, WithoutTheOptionABodyRunsOncePerRank) {
  run_rank_threads(2, [](World world) {
    Net net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    std::vector<int> seen;
    model.for_each_virtual_rank([&](int virtual_rank) { seen.push_back(virtual_rank); });
    EXPECT_EQ(seen, std::vector<int>{world.rank});
    EXPECT_EQ(model.virtual_ranks(), (VirtualRankRange{world.rank, 1, 2}));
  });
}

void expect_refused(int ranks, const std::function<void(World)>& body, ErrorCode code,
                    const std::string& text) {
  const auto error = error_of([&] { run_rank_threads(ranks, body); });
  EXPECT_EQ(error.code(), code);
  EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
}

TEST(DdpVirtualRanks, ErrorsNameWhatIsWrong) {
  const auto make = [](const World& world, const DdpOptions& options) {
    return DistributedDataParallel(Net(), ProcessGroup::create(world), options);
  };
  constexpr auto kInvalid = ErrorCode::kInvalidArgument;
  expect_refused(
      3, [&](World world) { make(world, {.virtual_ranks = 2}); }, kInvalid,
      "3 ranks cannot share 2 virtual ranks");
  expect_refused(
      1, [&](World world) { make(world, {.virtual_ranks = -1}); }, kInvalid, "virtual_ranks is -1");
  expect_refused(
      1, [&](World world) { make(world, {.broadcast_buffers = false, .virtual_ranks = 1}); },
      kInvalid, "broadcast_buffers");
  expect_refused(
      2, [&](World world) { make(world, {.virtual_ranks = world.rank == 0 ? 2 : 4}); },
      ErrorCode::kMismatch, "4 virtual ranks");
  expect_refused(
      2,
      [&](World world) {
        at::get_num_threads();  // libtorch sets a thread's number to that of the process once
        at::set_num_threads(1 + world.rank);
        make(world, {.virtual_ranks = 2});
      },
      ErrorCode::kMismatch, "intra-op threads 2");
  expect_refused(
      1,
      [&](World world) {
        make(world, {.virtual_ranks = 1}).forward(torch::ones({2, 600}));
      },
      kInvalid, "for_each_virtual_rank");
  expect_refused(
      1,
      [&](World world) {
        auto model = make(world, {.virtual_ranks = 2});
        model.for_each_virtual_rank([&](int) { model.forward(torch::ones({2, 600})); });
      },
      kInvalid, "no gradient came for 'scale', 'first.weight'");
  for (const auto& [ranks, virtual_ranks] : {std::pair(2, 2), {3, 4}}) {
    expect_refused(
        ranks,
        [&, v = virtual_ranks](World world) {
          Net net;
          auto model =
              DistributedDataParallel(net, ProcessGroup::create(world), {.virtual_ranks = v});
          model.for_each_virtual_rank([&](int) {
            model.forward(torch::ones({2, 600}));
            net->first->weight.sum().backward();
          });
        },
        kInvalid,
        "'norm.weight', 'norm.bias', 'last.weight', 'last.bias' in this backward pass: every "
        "parameter must take part in the loss, of every virtual rank; turn requires_grad off");
  }
}

TEST(DdpVirtualRanks, ParametersThatChangeAfterwardsAreRefused) {
  for (const int ranks : {1, 2}) {
    expect_refused(
        ranks,
        [](World world) {
          Net net;
          net->scale.set_requires_grad(false);
          auto model =
              DistributedDataParallel(net, ProcessGroup::create(world), {.virtual_ranks = 2});
          net->scale.set_requires_grad(true);
          model.for_each_virtual_rank(
              [&](int virtual_rank) { loss_of(net, model, 0, virtual_rank).backward(); });
        },
        ErrorCode::kInvalidArgument, "parameter 'scale' has come to require a gradient");
  }
}

TEST(DdpVirtualRanks, ASparseGradientIsCalledSparse) {
  for (const int ranks : {1, 2, 4}) {
    expect_refused(
        ranks,
        [](World world) {
          torch::nn::Embedding net(torch::nn::EmbeddingOptions(4, 2).sparse(true));
          auto model =
              DistributedDataParallel(net, ProcessGroup::create(world), {.virtual_ranks = 4});
          model.for_each_virtual_rank([&](int /*virtual_rank*/) {
            model(torch::tensor({1, 2})).sum().backward();
          });
        },
        ErrorCode::kInvalidArgument, "parameter 'weight' got a sparse gradient; only dense ones");
  }
}

// Its first bucket is in progress by then.
TEST(DdpVirtualRanks, ARankThatMissesAGradientNamesItAndTheOthersEnd) {
  run_rank_threads(3, [](World world) {
    Net net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         {.bucket_cap_mb = 0.01, .virtual_ranks = 4});
    const auto error = error_of([&] {
      model.for_each_virtual_rank([&](int virtual_rank) {
        const Tensor loss = loss_of(net, model, 0, virtual_rank);
        (world.rank == 2 ? net->last(torch::ones({2, 500})).sum() : loss).backward();
      });
    });
    if (world.rank == 2) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("'first.weight'"), std::string::npos)
          << error.what();
    } else {
      EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
    }
  });
}

}  // namespace
}  // namespace lockstep
