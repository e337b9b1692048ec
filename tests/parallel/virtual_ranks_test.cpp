// One number of virtual ranks, any number of ranks: the same bits. Ranks are threads.
#include "lockstep/parallel/virtual_ranks.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <mutex>
#include <string>

#include "lockstep/comm/reduce_tree.h"
#include "lockstep/distributed_data_parallel.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::HostLayout;
using testing::run_rank_threads;
using torch::Tensor;

std::string tree_text(int lo, int hi) {
  if (hi - lo == 1) return std::to_string(lo);
  const int mid = tree_mid(lo, hi);
  return "(" + tree_text(lo, mid) + "+" + tree_text(mid, hi) + ")";
}

TEST(VirtualRanks, OfARankAreARunOfThem) {
  EXPECT_EQ(deal_virtual_ranks(8, 0, 1), (VirtualRankRange{0, 8, 8}));
  EXPECT_EQ(deal_virtual_ranks(8, 3, 4), (VirtualRankRange{6, 2, 8}));
  EXPECT_EQ(deal_virtual_ranks(3, 2, 3), (VirtualRankRange{2, 1, 3}));
  EXPECT_EQ(deal_virtual_ranks(8, 0, 3), (VirtualRankRange{0, 3, 8}));
  EXPECT_EQ(deal_virtual_ranks(8, 1, 3), (VirtualRankRange{3, 3, 8}));
  EXPECT_EQ(deal_virtual_ranks(8, 2, 3), (VirtualRankRange{6, 2, 8}));
}

TEST(VirtualRanks, AreDealtOnceEachAndAsEvenlyAsCanBe) {
  for (int virtual_ranks = 1; virtual_ranks <= 40; ++virtual_ranks) {
    for (int size = 1; size <= virtual_ranks; ++size) {
      int next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto range = deal_virtual_ranks(virtual_ranks, rank, size);
        EXPECT_EQ(range.first, next);
        EXPECT_EQ(range.total, virtual_ranks);
        EXPECT_GE(range.count, virtual_ranks / size);
        EXPECT_LE(range.count, (virtual_ranks + size - 1) / size);
        next += range.count;
      }
      EXPECT_EQ(next, virtual_ranks) << size;
    }
  }
}

TEST(VirtualRanks, RefusesMoreRanksThanThereAre) {
  const auto message = [](int virtual_ranks, int size) {
    const auto error = error_of([&] { deal_virtual_ranks(virtual_ranks, 0, size); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  EXPECT_EQ(message(6, 7),
            "7 ranks cannot share 6 virtual ranks: each needs at least one; start at most 6 ranks, "
            "or take more virtual ranks");
  EXPECT_EQ(message(1, 2),
            "2 ranks cannot share 1 virtual rank: each needs at least one; start at most 1 rank, "
            "or take more virtual ranks");
  EXPECT_EQ(message(0, 1), "0 virtual ranks; there must be at least 1");
}

/// What `range` has after its last virtual rank, with texts in place of numbers.
std::vector<std::string> sums_of(const VirtualRankRange& range) {
  std::vector<std::string> sums;
  for (int index = 0; index < range.count; ++index) {
    std::string left = std::to_string(range.first + index);
    for (int n = sums_to_add(range, index); n > 0; --n) {
      left = "(" + sums.back() + "+" + left + ")";
      sums.pop_back();
    }
    sums.push_back(left);
  }
  return sums;
}

// First on each rank, then over the ranks.
TEST(VirtualRanks, SumsOfRanksAreSubtreesOfTheTreeOverThem) {
  for (int virtual_ranks = 1; virtual_ranks <= 24; ++virtual_ranks) {
    for (int size = 1; size <= virtual_ranks; ++size) {
      std::vector<std::string> values;
      for (int rank = 0; rank < size; ++rank) {
        const auto range = deal_virtual_ranks(virtual_ranks, rank, size);
        const auto sums = sums_of(range);
        const auto subtrees = owned_subtrees(range);
        ASSERT_EQ(sums.size(), subtrees.size());
        for (size_t i = 0; i < sums.size(); ++i) {
          EXPECT_EQ(sums[i], tree_text(subtrees[i].lo, subtrees[i].hi));
        }
        values.insert(values.end(), sums.begin(), sums.end());
      }
      for (const auto& add : tree_additions(all_subtrees(virtual_ranks, size), virtual_ranks)) {
        auto& left = values[static_cast<size_t>(add.left)];
        left = "(" + left + "+" + values[static_cast<size_t>(add.right)] + ")";
      }
      EXPECT_EQ(values[0], tree_text(0, virtual_ranks)) << size;
    }
  }
}

/// The sum over ranks, of which each has `values[rank]`, in the order of ProcessGroup.
std::string sum_of_ranks(const std::vector<std::string>& values, int lo, int hi) {
  if (hi - lo == 1) return values[static_cast<size_t>(lo)];
  const int mid = tree_mid(lo, hi);
  return "(" + sum_of_ranks(values, lo, mid) + "+" + sum_of_ranks(values, mid, hi) + ")";
}

TEST(VirtualRanks, RanksAddAsTheTreeWhereTheirSumsGiveItsText) {
  for (int virtual_ranks = 1; virtual_ranks <= 24; ++virtual_ranks) {
    for (int size = 1; size <= virtual_ranks; ++size) {
      std::vector<std::string> values;
      size_t subtrees = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto sums = sums_of(deal_virtual_ranks(virtual_ranks, rank, size));
        values.push_back(sums.back());
        subtrees += sums.size();
      }
      const bool same =
          subtrees == values.size() && sum_of_ranks(values, 0, size) == tree_text(0, virtual_ranks);
      EXPECT_EQ(ranks_add_as_tree(virtual_ranks, size), same) << virtual_ranks << " " << size;
      const int each = virtual_ranks / size;
      const bool even = virtual_ranks % size == 0 && (each & (each - 1)) == 0;
      EXPECT_TRUE(same || !(even || size == 1)) << virtual_ranks << " " << size;
    }
  }
  EXPECT_FALSE(ranks_add_as_tree(8, 3));
  EXPECT_FALSE(ranks_add_as_tree(6, 2));
}

TEST(VirtualRanks, TreeSumHasTheTreesOrder) {
  const std::vector<double> leaves = {1, 1e16, -1e16, 1, 1e-3, 3, 7};
  EXPECT_EQ(tree_sum(leaves), (((1 + 1e16) + (-1e16 + 1)) + ((1e-3 + 3) + 7)));
  EXPECT_EQ(tree_sum({}), 0);
}

TEST(VirtualRanks, BatchesLieInTurn) {
  EXPECT_EQ(lay_in_turn({{1, 2, 3}, {4, 5, 6}}, 2), (std::vector<int64_t>{1, 2, 4, 5, 3, 6}));
  EXPECT_EQ(lay_in_turn({{1, 2, 3}}, 2), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(lay_in_turn({{}, {}}, 2), std::vector<int64_t>{});
}

TEST(VirtualRanks, SeedsDifferByEachPartOfTheKey) {
  const auto drawn = [](uint64_t seed, int64_t step, int virtual_rank) {
    seed_virtual_rank(seed, step, virtual_rank);
    return torch::rand({8});
  };
  const Tensor value = drawn(1, 2, 3);
  torch::rand({5});
  EXPECT_TRUE(value.equal(drawn(1, 2, 3)));
  for (const Tensor& other : {drawn(2, 2, 3), drawn(1, 3, 3), drawn(1, 2, 4), drawn(1, 3, 2)}) {
    EXPECT_FALSE(value.equal(other));
  }
}

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

// Several buckets, and ranks on hosts of their own.
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

// With one virtual rank a rank, gradients are those of the mode without virtual ranks; statistics
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
          model.zero_grad();  // of no effect on the virtual ranks before
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
        at::get_num_threads();  // libtorch sets a thread's number to the process's once
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

}  // namespace
}  // namespace lockstep
