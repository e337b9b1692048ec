// Semantics of DistributedDataParallel on small modules; ranks are threads.
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <mutex>

#include "lockstep/distributed_data_parallel.h"
#include "lockstep/error.h"
#include "tests/parallel/two_heads.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using namespace testing;  // two_heads.h and ranks.h
using torch::Tensor;

template <class Body>
std::string text_of_error(ErrorCode code, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "(no error)";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// Expected values from PyTorch 1.13 and Gloo for the same module and inputs.
void expect_averages_of_pytorch(const std::string& backend) {
  run_rank_threads(2, [&](World world) {
    TwoHeads net;
    net->c->weight.set_requires_grad(false);
    net->c->bias.set_requires_grad(false);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world, {.backend = backend}));
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      model(input_of(world.rank), true, false).backward();
      expect_near(net->a->weight.grad(), {.45F, .9F, .6F, 1.2F}, "a.weight");
      expect_near(net->a->bias.grad(), {.3F, .4F}, "a.bias");
      expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
      expect_near(net->b->bias.grad(), {1}, "b.bias");
      EXPECT_FALSE(net->c->weight.grad().defined());
    }
  });
}

TEST(Ddp, AveragesAsPyTorchDoes) {
  expect_averages_of_pytorch("native");
}

#ifdef LOCKSTEP_WITH_GLOO
TEST(Ddp, AveragesAsPyTorchDoesOnGloo) {
  expect_averages_of_pytorch("c10d:gloo");
}
#endif

TEST(Ddp, NoSyncAccumulatesLocallyUntilTheNextSynchronisedBackward) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const Tensor x = input_of(world.rank);
    for (int step = 0; step < 2; ++step) {
      model.zero_grad();
      {
        std::optional<NoSync> guard;  // as in a loop whose guard covers all but its last pass
        guard.emplace(model.no_sync());
        model(x, true, true).backward();
      }
      if (world.rank == 0) expect_near(net->b->weight.grad(), {.7F, 1.4F}, "local, rank 0");
      if (world.rank == 1) expect_near(net->b->weight.grad(), {1.2F, 2.5F}, "local, rank 1");
      model(x, true, true).backward();
      expect_near(net->b->weight.grad(), {1.9F, 3.9F}, "twice the average");
    }
  });
}

// k micro-batches, each loss divided by k, are one batch of k times the size.
TEST(Ddp, MicroBatchesAddUpToALargeBatch) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const auto backward = [&](int micro) {
      (model(input_of(world.rank) * micro, true, true) / 3).backward();
    };
    for (int step = 0; step < 2; ++step) {
      model.zero_grad();
      {
        const auto hold = model.no_sync();
        backward(1);
        backward(2);
      }
      backward(3);
      expect_near(net->c->bias.grad(), {1}, "c.bias");
      expect_near(net->b->weight.grad(), {1.7F, 3.6F}, "b.weight");
    }
  });
}

TEST(Ddp, ZeroingInPlaceIsRightToo) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      for (auto& parameter : model.parameters()) {
        if (!parameter.grad().defined()) continue;
        parameter.mutable_grad().detach_();
        parameter.mutable_grad().zero_();
      }
      optimizer.zero_grad();
      model(input_of(world.rank), true, true).backward();
      expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
    }
  });
}

TEST(Ddp, ParameterUsedTwiceCountsOnce) {
  run_rank_threads(2, [](World world) {
    torch::nn::Linear net(2, 2);
    torch::nn::init::eye_(net->weight);
    torch::nn::init::zeros_(net->bias);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const Tensor x = input_of(world.rank);
    (model(x) + model(2 * x)).sum().backward();
    expect_near(net->weight.grad(), {4.5F, 9, 4.5F, 9}, "weight");  // 3 * mean of x
  });
}

struct CountedImpl : torch::nn::Module {
  torch::nn::Linear fc{nullptr};
  Tensor seen, count;
  explicit CountedImpl(int rank) {
    fc = register_module("fc", torch::nn::Linear(2, 1));
    seen = register_buffer("seen", torch::full({3}, static_cast<float>(rank)));
    count = register_buffer("count", torch::tensor(rank, torch::kLong));
  }
  Tensor forward(const Tensor& x) {
    seen += 1;
    return fc(x).sum();
  }
};
TORCH_MODULE(Counted);

TEST(Ddp, GivesEveryRankTheParametersAndBuffersOfRankZero) {
  run_rank_threads(3, [](World world) {
    torch::nn::Linear reference(2, 1);
    Counted net(world.rank);
    const torch::NoGradGuard no_grad;
    net->fc->weight.fill_(world.rank + 5);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    expect_near(net->fc->weight, {5, 5}, "parameter");
    expect_near(net->seen, {0, 0, 0}, "buffer");
    EXPECT_EQ(net->count.item<int64_t>(), 0);
  });
}

TEST(Ddp, BroadcastsBuffersBeforeTrainingForwards) {
  run_rank_threads(2, [](World world) {
    Counted net(world.rank);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const Tensor x = input_of(world.rank);
    const auto spoil = [&] { net->seen.fill_(10 * world.rank); };
    spoil();
    model(x);
    expect_near(net->seen, {1, 1, 1}, "training");
    spoil();
    {
      const torch::NoGradGuard no_grad;
      model(x);
    }
    EXPECT_EQ(net->seen[0].item<float>(), 10 * world.rank + 1) << "without gradients";
    model.eval();
    EXPECT_FALSE(model.is_training());
    spoil();
    model(x);
    EXPECT_EQ(net->seen[0].item<float>(), 10 * world.rank + 1) << "evaluation";
    model.train();
    {
      const auto guard = model.no_sync();
      spoil();
      model(x);
    }
    EXPECT_EQ(net->seen[0].item<float>(), 10 * world.rank + 1) << "no_sync";
  });
}

TEST(Ddp, KeepsOwnBuffersWhenAskedTo) {
  run_rank_threads(2, [](World world) {
    Counted net(world.rank);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         DdpOptions{.broadcast_buffers = false});
    net->seen.fill_(10 * world.rank);
    model(input_of(0));
    EXPECT_EQ(net->seen[0].item<float>(), 10 * world.rank + 1);
  });
}

/// Large and small layers, so that gradients are both placed and packed.
torch::nn::Sequential wide_net() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(512, 600), torch::nn::Linear(600, 512),
                               torch::nn::Linear(512, 4));
}

std::vector<Tensor> train_wide(World world, double cap_mb, bool keep_extra) {
  static std::mutex one_at_a_time;  // the process has one seed
  std::unique_lock lock(one_at_a_time);
  auto net = wide_net();
  lock.unlock();
  auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                       DdpOptions{.bucket_cap_mb = cap_mb});
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  std::vector<Tensor> extra;
  const Tensor x = torch::linspace(-1, 1, 8 * 512).view({8, 512}) * (world.rank + 1);
  for (int step = 0; step < 4; ++step) {
    model.zero_grad();
    const Tensor loss = model.forward(x).square().mean();
    // Takes the arena's blocks, so that the gradients must use other places.
    if (keep_extra) {
      for (const auto& parameter : model.parameters()) extra.push_back(torch::ones_like(parameter));
    }
    loss.backward();
    optimizer.step();
  }
  for (const Tensor& tensor : extra) EXPECT_TRUE(tensor.eq(1).all().item<bool>());
  std::vector<Tensor> weights;
  for (const auto& parameter : model.parameters()) weights.push_back(parameter.detach().clone());
  return weights;
}

TEST(Ddp, BitsDependNeitherOnBucketsNorOnWhereGradientsLie) {
  std::vector<std::vector<Tensor>> runs(6);
  for (size_t variant = 0; variant < 3; ++variant) {
    run_rank_threads(2, [&](World world) {
      at::set_num_threads(1);
      const double cap_mb = variant == 1 ? 0.001 : 25;
      runs[2 * variant + static_cast<size_t>(world.rank)] = train_wide(world, cap_mb, variant == 2);
    });
  }
  for (const auto& run : runs) {
    for (size_t i = 0; i < run.size(); ++i) EXPECT_TRUE(run[i].equal(runs[0][i])) << i;
  }
}

// Both halves of the gradient of cat(w, w2) + d lie in the memory of d's gradient.
TEST(Ddp, AveragesNothingTwiceWhenGradientsShareMemory) {
  struct Halves : torch::nn::Module {
    Tensor upper = register_parameter("upper", torch::ones({512, 1024}));
    Tensor lower = register_parameter("lower", torch::ones({512, 1024}));
    Tensor whole = register_parameter("whole", torch::ones({1024, 1024}));
    Tensor forward(double scale) {
      const Tensor sum = torch::cat({upper, lower}) + whole;
      return (sum * sum * (scale / 4)).sum();  // gradient of `sum`: sum / 2 * scale = scale
    }
  };
  run_rank_threads(2, [](World world) {
    auto net = std::make_shared<Halves>();
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      model.forward(1 + 2 * world.rank).backward();
      for (const auto& parameter : model.parameters()) {
        EXPECT_TRUE(parameter.grad().eq(2).all().item<bool>());
      }
    }
  });
}

TEST(Ddp, WorldOfOneChangesNothing) {
  run_rank_threads(1, [](World world) {
    auto net = std::make_shared<TwoHeadsImpl>();
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    for (int step = 0; step < 2; ++step) {
      model.zero_grad();
      model.forward(input_of(0), true, false).backward();
      expect_near(net->b->weight.grad(), {.7F, 1.4F}, "b.weight");
      EXPECT_FALSE(net->c->weight.grad().defined());
    }
    EXPECT_EQ(model.comm_exposed_ms(), 0);
    EXPECT_EQ(model.module(), net);
    EXPECT_EQ(model.parameters().size(), 6u);
  });
}

TEST(DdpErrors, NamesTheParameterAndBothShapesOnEveryRank) {
  run_rank_threads(3, [](World world) {
    torch::nn::Sequential net(torch::nn::Linear(4, 3),
                              torch::nn::Linear(3, world.rank == 1 ? 5 : 2));
    auto group = ProcessGroup::create(world);
    const auto text =
        text_of_error(ErrorCode::kMismatch, [&] { DistributedDataParallel(net, group); });
    expect_contains(text, "rank 1 has parameter '1.weight' Float [5, 3]");
    expect_contains(text, "rank 0 has parameter '1.weight' Float [2, 3]");
  });
}

TEST(DdpErrors, NamesAMissingParameter) {
  run_rank_threads(2, [](World world) {
    torch::nn::Sequential net(torch::nn::Linear(2, 2));
    if (world.rank == 0) net->push_back(torch::nn::Linear(2, 7));
    auto group = ProcessGroup::create(world);
    const auto text =
        text_of_error(ErrorCode::kMismatch, [&] { DistributedDataParallel(net, group); });
    expect_contains(text, "rank 1 has nothing where rank 0 has parameter '1.weight' Float [7, 2]");
  });
}

struct LayerAndBuffer : torch::nn::Module {
  explicit LayerAndBuffer(const Tensor& value) {
    register_module("layer", layer);
    register_buffer("other", value);
  }
  torch::nn::Linear layer{2, 2};
};

/// The error of a model with this buffer. The weights must stay as they were.
std::string error_of_buffer(const Tensor& value) {
  std::string text;
  run_rank_threads(2, [&](World world) {
    auto net = std::make_shared<LayerAndBuffer>(value);
    const Tensor before = net->layer->weight.detach().clone();
    auto group = ProcessGroup::create(world);
    const auto why =
        text_of_error(ErrorCode::kInvalidArgument, [&] { DistributedDataParallel(net, group); });
    expect_contains(why, "tensor 'other' of the module");
    EXPECT_TRUE(net->layer->weight.equal(before));
    if (world.rank == 0) text = why;
  });
  return text;
}

TEST(DdpErrors, NamesABufferWhoseElementsShareMemory) {
  expect_contains(error_of_buffer(torch::ones({1, 8}).expand({4, 8})), "contiguous() it before");
}

TEST(DdpErrors, NamesASparseBuffer) {
  expect_contains(error_of_buffer(torch::eye(4).to_sparse()), "is not dense");
}

// The average would silently drop the graph.
TEST(DdpErrors, NamesAGradientWithAGraph) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    for (const bool is_static : {false, true}) {
      torch::nn::Linear net(2, 1);
      DistributedDataParallel model(net, group, DdpOptions{.static_graph = is_static});
      const Tensor loss = model(input_of(world.rank)).square().sum();
      const auto text = text_of_error(ErrorCode::kInvalidArgument, [&] {
        loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true);
      });
      expect_contains(text, "create_graph is not supported by the average");
      expect_contains(text, "parameter '");
      net->zero_grad(/*set_to_none=*/true);  // a graph would keep parameters and gradients alive
    }
  });
}

TEST(DdpErrors, NamesParametersWithoutGradient) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const Tensor loss = model(input_of(world.rank), true, false);
    const auto text = text_of_error(ErrorCode::kInvalidArgument, [&] { loss.backward(); });
    expect_contains(text, "no gradient came for 'c.weight', 'c.bias'");
    model.zero_grad();
    model(input_of(world.rank), true, true).backward();  // the group still works
    expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
  });
}

TEST(DdpErrors, ARankThatGoesOnWithoutItsPeersIsRefused) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const Tensor x = input_of(world.rank);
    if (world.rank == 0) {
      const Tensor loss = model(x, true, false);
      const auto missing = text_of_error(ErrorCode::kInvalidArgument, [&] { loss.backward(); });
      expect_contains(missing, "no gradient came for 'c.weight', 'c.bias'");
    }
    const auto text = text_of_error(ErrorCode::kMismatch, [&] { model(x, true, true).backward(); });
    expect_contains(text, "rank 0 called barrier");
    expect_contains(text, "rank 1 called all_reduce");
  });
}

TEST(DdpErrors, ParametersThatChangeAfterwardsAreRefused) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    TwoHeads thawing;
    for (auto& parameter : thawing->c->parameters()) parameter.set_requires_grad(false);
    DistributedDataParallel model(thawing, group);
    model(input_of(world.rank), true, false).backward();
    thawing->c->weight.set_requires_grad(true);
    const auto thawed = text_of_error(ErrorCode::kInvalidArgument,
                                      [&] { model(input_of(world.rank), true, false); });
    expect_contains(thawed, "has come to require a gradient");

    TwoHeads retyped;
    DistributedDataParallel other(retyped, group);
    retyped->to(torch::kDouble);
    const auto changed = text_of_error(ErrorCode::kInvalidArgument, [&] {
      other(input_of(world.rank).to(torch::kDouble), true, false);
    });
    expect_contains(changed, "has changed its type or device");

    TwoHeads grown;
    DistributedDataParallel third(grown, group);
    grown->c->bias.set_data(torch::ones({2}));
    const auto resized = text_of_error(ErrorCode::kInvalidArgument,
                                       [&] { third(input_of(world.rank), true, true); });
    expect_contains(resized, "parameter 'c.bias' has changed its sizes");
  });
}

TEST(DdpErrors, NothingToTrainOnOneRankIsToldOnAll) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    TwoHeads net;
    if (world.rank == 1) {
      for (auto& parameter : net->parameters()) parameter.set_requires_grad(false);
    }
    const auto why =
        text_of_error(ErrorCode::kMismatch, [&] { DistributedDataParallel(net, group); });
    expect_contains(why, "frozen parameter");
  });
}

TEST(DdpErrors, RefusesBackwardWithoutForward) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    const Tensor loss = net->forward(input_of(world.rank), true, true);
    const auto text = text_of_error(ErrorCode::kInvalidArgument, [&] { loss.backward(); });
    expect_contains(text, "without a forward() of the data parallel model");
  });
}

TEST(DdpErrors, RefusesToGoOnAfterABrokenBackward) {
  run_rank_threads(2, [](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    Tensor hidden = torch::zeros({1, 2});
    const Tensor x = input_of(world.rank).requires_grad_();
    x.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("the user's"); });
    EXPECT_THROW(model(x, true, true).backward(), std::exception);
    const auto text =
        text_of_error(ErrorCode::kInvalidArgument, [&] { model(input_of(0), true, true); });
    expect_contains(text, "ended early");
  });
}

/// The error of backward() on rank 0 when rank 1 stays away, or, with `already`, has stayed away
/// before.
std::string error_without_rank_1(bool already) {
  std::string text;
  run_rank_threads(2, [&](World world) {
    TwoHeads net;
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(3)});
    auto model = DistributedDataParallel(net, group);
    if (world.rank == 1) {  // stays away until rank 0 has given up
      world.store->get("done", Deadline::after(std::chrono::seconds(60)));
      return;
    }
    const Tensor loss = model(input_of(0), true, true);
    if (already) {
      EXPECT_THROW(group.barrier(), Error);
    }
    text = text_of_error(ErrorCode::kTimeout, [&] { loss.backward(); });
    world.store->set("done", "yes", Deadline::after(std::chrono::seconds(60)));
  });
  return text;
}

TEST(DdpErrors, OfTheGroupComeOutOfBackwardWithNames) {
  for (const bool already : {false, true}) {
    const auto text = error_without_rank_1(already);
    expect_contains(text, "rank 1");
    expect_contains(text, "(while averaging the gradients of 'c.bias', 'c.weight'");
  }
}

TEST(DdpErrors, ChecksOptionsAndModules) {
  run_rank_threads(1, [](World world) {
    auto group = ProcessGroup::create(world);
    TwoHeads net;
    const auto cap = text_of_error(ErrorCode::kInvalidArgument, [&] {
      DistributedDataParallel(net, group, DdpOptions{.bucket_cap_mb = 0});
    });
    expect_contains(cap, "bucket_cap_mb is 0");
    for (auto& parameter : net->parameters()) parameter.set_requires_grad(false);
    const auto frozen =
        text_of_error(ErrorCode::kInvalidArgument, [&] { DistributedDataParallel(net, group); });
    expect_contains(frozen, "at least one parameter");
  });
}

}  // namespace
}  // namespace lockstep
