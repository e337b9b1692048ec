// A run resumed with a hook's state gives the bits of the uninterrupted run.
#include "lockstep/parallel/comm_hook_state.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "lockstep/comm_hook.h"
#include "lockstep/distributed_data_parallel.h"
#include "lockstep/parallel/int8_hook.h"
#include "lockstep/parallel/power_sgd.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using testing::run_rank_threads;

TEST(CommHookStateText, BucketsRoundTrip) {
  for (const auto& buckets :
       std::vector<BucketNames>{{}, {{"a.weight"}}, {{"b", "a"}, {"c d"}, {"e", "f", "g"}}}) {
    EXPECT_EQ(bucket_names_from_text(to_text(buckets)), buckets);
  }
}

/// Four layers, the last of which may be omitted; their gradients become ready in no simple order.
struct CrossedImpl : torch::nn::Module {
  torch::nn::Linear a{20, 30}, b{30, 30}, c{30, 30}, spare{3, 3};
  CrossedImpl() {
    register_module("b", b);
    register_module("a", a);
    register_module("spare", spare);
    register_module("c", c);
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      const auto at = torch::arange(parameter.numel(), torch::kFloat);
      parameter.copy_((at * 12.9898).sin().mul(0.3).view_as(parameter));
    }
  }
  torch::Tensor forward(const torch::Tensor& x, bool use_spare) {
    const auto y = c(b(a(x).tanh()).tanh()).square().mean();
    return use_spare ? y + spare->weight.sum() + spare->bias.sum() : y;
  }
};
TORCH_MODULE(Crossed);

struct Plan {
  std::function<std::shared_ptr<CommHook>()> hook;
  DdpOptions options{};  ///< Except for the hook.
  bool use_spare = true;
};

using Model = DistributedDataParallel<Crossed>;

struct Saved {
  std::vector<torch::Tensor> weights;
  std::vector<CommHookState> averaging;  ///< By rank.
};

Model make_model(const World& world, const Plan& plan) {
  auto options = plan.options;
  options.bucket_cap_mb = 0.004;
  options.comm_hook = plan.hook();
  return {Crossed(), ProcessGroup::create(world), options};
}

void take_steps(Model& model, int rank, int first, int last, bool use_spare) {
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  for (int step = first; step < last; ++step) {
    const auto at = torch::arange(4 * 20, torch::kFloat) + 7.0 * step + 311.0 * rank;
    optimizer.zero_grad();
    model.forward((at * 78.233).sin().view({4, 20}), use_spare).backward();
    optimizer.step();
  }
}

std::vector<torch::Tensor> weights_of(const Model& model) {
  std::vector<torch::Tensor> weights;
  for (const auto& parameter : model.parameters()) weights.push_back(parameter.detach().clone());
  return weights;
}

/// Runs `steps` steps from the start; returns the data that rank 0 saves then.
Saved start(int ranks, const Plan& plan, int steps) {
  Saved saved;
  run_rank_threads(ranks, [&](World world) {
    at::set_num_threads(1);
    Model model = make_model(world, plan);
    take_steps(model, world.rank, 0, steps, plan.use_spare);
    auto averaging = model.comm_hook_state();
    if (world.rank == 0) {
      saved = {weights_of(model), std::move(averaging)};
    } else {
      EXPECT_TRUE(averaging.empty());
    }
  });
  return saved;
}

/// Runs steps [first, last) from there; `why`: the result of load_comm_hook_state() on rank 0.
Saved go_on(int ranks, const Plan& plan, const Saved& from, int first, int last,
            std::string* why = nullptr) {
  Saved saved;
  run_rank_threads(ranks, [&](World world) {
    at::set_num_threads(1);
    Model model = make_model(world, plan);
    {
      const torch::NoGradGuard no_grad;
      auto parameters = model.parameters();
      for (size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(from.weights[i]);
    }
    const auto rank = static_cast<size_t>(world.rank);
    const auto text = model.load_comm_hook_state(rank < from.averaging.size() ? from.averaging[rank]
                                                                              : CommHookState{});
    if (why && world.rank == 0) *why = text;
    take_steps(model, world.rank, first, last, plan.use_spare);
    auto averaging = model.comm_hook_state();
    if (world.rank == 0) saved = {weights_of(model), std::move(averaging)};
  });
  return saved;
}

void expect_same(const Saved& a, const Saved& b) {
  for (size_t i = 0; i < a.weights.size(); ++i) EXPECT_TRUE(a.weights[i].equal(b.weights[i])) << i;
  ASSERT_EQ(a.averaging.size(), b.averaging.size());
  for (size_t rank = 0; rank < a.averaging.size(); ++rank) {
    EXPECT_EQ(a.averaging[rank].about, b.averaging[rank].about);
    for (const auto& [name, tensor] : a.averaging[rank].tensors) {
      EXPECT_TRUE(tensor.equal(b.averaging[rank].tensors.at(name))) << rank << " " << name;
    }
  }
}

const Plan kInt8{[] { return make_int8_hook(); }};
const Plan kPowerSgd{[] { return make_power_sgd_hook({.start_step = 3}); }};

// Saved while the buckets of the first step still exist, before PowerSGD begins, and later.
TEST(CommHookState, TwoHalvesAreTheWhole) {
  Plan fixed = kInt8, unused = kPowerSgd;
  fixed.options.static_graph = unused.options.find_unused_parameters = true;
  fixed.use_spare = unused.use_spare = false;
  for (const Plan& plan : {kInt8, kPowerSgd, fixed, unused}) {
    for (const int ranks : {2, 3}) {
      const Saved whole = start(ranks, plan, 20);
      ASSERT_EQ(whole.averaging.size(), static_cast<size_t>(ranks));
      for (const int half : {1, 2, 10}) {
        SCOPED_TRACE(fmt::format("{}, static_graph {}, {} ranks, {} steps", plan.hook()->describe(),
                                 plan.options.static_graph, ranks, half));
        const Saved first = start(ranks, plan, half);
        std::string why = "not asked";
        expect_same(go_on(ranks, plan, first, half, 20, &why), whole);
        EXPECT_EQ(why, "");
      }
    }
  }
}

TEST(CommHookState, MattersToTheBits) {
  for (const Plan& plan : {kInt8, kPowerSgd}) {
    const Saved whole = start(2, plan, 20);
    Saved first = start(2, plan, 10);
    first.averaging.clear();
    std::string why = "not asked";
    EXPECT_FALSE(go_on(2, plan, first, 10, 20, &why).weights[0].equal(whole.weights[0]));
    EXPECT_EQ(why, "");
  }
}

TEST(CommHookState, SaysWhyItDoesNotFitAndBeginsWithout) {
  const Saved first = start(2, kInt8, 4);
  Saved bare = first;
  bare.averaging.clear();
  const auto refused = [&](int ranks, const Plan& plan, const Saved& from) {
    std::string why;
    expect_same(go_on(ranks, plan, from, 4, 8, &why), go_on(ranks, plan, bare, 4, 8));
    return why;
  };
  EXPECT_EQ(refused(3, kInt8, first), "it is that of 2 ranks, this run has 3");
  EXPECT_EQ(refused(2, kPowerSgd, first),
            "it is that of comm_hook int8, this run has powersgd (rank 1, start_step 3, min_saving "
            "2, seed 0)");
  Saved other = first;
  for (auto& state : other.averaging) state.about["buckets"] = "a.weight\nno.such";
  EXPECT_EQ(refused(2, kInt8, other), "it is that of other parameters");
  other.averaging.pop_back();
  EXPECT_EQ(refused(2, kInt8, other), "another rank has none that fits");
}

// As from a net that had one type when it was saved.
TEST(CommHookState, OfGradientsOfTwoTypesInABucketDoesNotFit) {
  struct TwoTypes : torch::nn::Module {
    torch::Tensor a = register_parameter("a", torch::zeros({3}));
    torch::Tensor b = register_parameter("b", torch::zeros({3}, torch::kDouble));
    torch::Tensor forward(double slope) { return (a.sum() + b.sum()) * slope; }
  };
  run_rank_threads(2, [](World world) {
    const auto net = std::make_shared<TwoTypes>();
    auto model =
        DistributedDataParallel(net, ProcessGroup::create(world), {.comm_hook = make_int8_hook()});
    const CommHookState saved{{{"hook", "int8"}, {"ranks", "2"}, {"buckets", "a\nb"}}, {}};
    EXPECT_EQ(model.load_comm_hook_state(saved), "it is that of other parameters");
    model(1 + 2 * world.rank).backward();
    for (const auto& grad : {net->a.grad(), net->b.grad()}) {
      EXPECT_TRUE(torch::allclose(grad.to(torch::kFloat), torch::full({3}, 2.0F), 0.02)) << grad;
    }
  });
}

TEST(CommHookState, IsEmptyWhereNothingIsRemembered) {
  EXPECT_TRUE(start(2, {[] { return nullptr; }}, 2).averaging.empty());
  EXPECT_TRUE(start(2, {[] { return make_comm_hook("bf16"); }}, 2).averaging.empty());
  EXPECT_TRUE(start(2, kInt8, 0).averaging.empty());
  EXPECT_TRUE(start(1, kInt8, 2).averaging.empty());
}

TEST(CommHookState, ATensorOfAnotherShapeIsCorrupt) {
  Saved first = start(2, kInt8, 4);
  for (auto& state : first.averaging) state.tensors.at("0.rest") = torch::zeros({3});
  const Error error = error_of([&] { go_on(2, kInt8, first, 4, 5); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("state '0.rest' of a hook is Float [3], not Float ["),
            std::string::npos)
      << error.what();
}

TEST(CommHookState, OfAHookWithoutMemoryIsCorrupt) {
  const Error error = error_of([] { make_comm_hook("fp16")->load_state({{"x", torch::ones(1)}}); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_STREQ(error.what(), "state of hook fp16, which has none: 'x'");
}

TEST(CommHookState, PostLocalSgdCountsOn) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    PostLocalSgd local(group, group.subgroup({world.rank}));
    const HookState state = {{"steps", torch::full({1}, 7, torch::kLong)}};
    local.hook()->load_state(state);
    EXPECT_EQ(local.hook()->state()->at("steps").item<int64_t>(), 7);
  });
}

}  // namespace
}  // namespace lockstep
