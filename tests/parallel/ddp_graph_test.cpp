// Graphs in which not every parameter takes part once: find_unused_parameters and static_graph.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/distributed_data_parallel.h"
#include "lockstep/parallel/autograd_hooks.h"
#include "tests/parallel/two_heads.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using namespace testing;  // two_heads.h and ranks.h
using torch::Tensor;

DdpOptions find_unused() {
  return {.find_unused_parameters = true};
}

/// Runs body(rank, net, its data parallel model) on two ranks.
template <class Body>
void on_two_ranks(const DdpOptions& options, const Body& body) {
  run_rank_threads(2, [&](World world) {
    TwoHeads net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), options);
    body(world.rank, net, model);
  });
}

TEST(DdpUnused, WhatNoRankUsesIsLeftAlone) {
  on_two_ranks(find_unused(), [](int rank, TwoHeads& net, auto& model) {
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      model(input_of(rank), true, false).backward();
      expect_near(net->a->weight.grad(), {.45F, .9F, .6F, 1.2F}, "a.weight");
      expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
      EXPECT_FALSE(net->c->weight.grad().defined());
      EXPECT_FALSE(net->c->bias.grad().defined());
    }
  });
}

// Expected values from PyTorch 1.13 over Gloo.
TEST(DdpUnused, WhatOneRankUsesGetsTheAverageOnAll) {
  on_two_ranks(find_unused(), [](int rank, TwoHeads& net, auto& model) {
    for (int step = 0; step < 4; ++step) {
      model.zero_grad();
      const bool use_b = (rank + step) % 2 == 0;  // the ranks change places
      const Tensor x = input_of(use_b ? 0 : 1);
      model(x, use_b, !use_b).backward();
      expect_near(net->a->weight.grad(), {.65F, 1.3F, .8F, 1.6F}, "a.weight");
      expect_near(net->a->bias.grad(), {.4F, .5F}, "a.bias");
      expect_near(net->b->weight.grad(), {.35F, .7F}, "b.weight");
      expect_near(net->b->bias.grad(), {.5F}, "b.bias");
      expect_near(net->c->weight.grad(), {.6F, 1.25F}, "c.weight");
      expect_near(net->c->bias.grad(), {.5F}, "c.bias");
    }
  });
}

TEST(DdpUnused, OldGradientsOfWhatNoRankUsesKeepTheirValues) {
  on_two_ranks(find_unused(), [](int rank, TwoHeads& net, auto& model) {
    const Tensor x = input_of(rank);
    model(x, true, true).backward();
    expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
    net->c->weight.mutable_grad() = torch::full({1, 2}, 1.0F + rank);
    for (int step = 0; step < 2; ++step) {
      net->b->weight.mutable_grad().reset();
      model(x, true, false).backward();
      expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
      expect_near(net->c->weight.grad(), {1.0F + rank, 1.0F + rank}, "c.weight");
      expect_near(net->c->bias.grad(), {1}, "c.bias");
    }
  });
}

// Used in an accumulating step on one rank, unused in the one that averages.
TEST(DdpUnused, UseInNoSyncStepsCounts) {
  on_two_ranks(find_unused(), [](int rank, TwoHeads& net, auto& model) {
    const Tensor x = input_of(rank);
    for (int step = 0; step < 2; ++step) {
      model.zero_grad();
      {
        const auto guard = model.no_sync();
        model(x, true, rank == 1).backward();
      }
      model(x, true, false).backward();
      expect_near(net->b->weight.grad(), {1.9F, 3.9F}, "b.weight");
      expect_near(net->c->weight.grad(), {.6F, 1.25F}, "c.weight");
    }
  });
}

/// Layers large enough to have memory of their own.
struct WideHeads : torch::nn::Module {
  torch::nn::Linear used{1024, 1024}, other{1024, 1024};
  WideHeads() {
    register_module("used", used);
    register_module("other", other);
  }
  Tensor forward(const Tensor& x, bool use_other) { return (use_other ? other : used)(x).sum(); }
};

TEST(DdpUnused, HoldsForLargeParametersToo) {
  run_rank_threads(2, [](World world) {
    auto net = std::make_shared<WideHeads>();
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), find_unused());
    const Tensor x = torch::ones({1, 1024});
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      model(x, world.rank == 1).backward();
      EXPECT_TRUE(net->used->weight.grad().eq(0.5).all().item<bool>());
      EXPECT_TRUE(net->other->weight.grad().eq(0.5).all().item<bool>());
      model.zero_grad();
      model(x, false).backward();
      EXPECT_TRUE(net->used->weight.grad().eq(1).all().item<bool>());
      EXPECT_FALSE(net->other->weight.grad().defined());
    }
  });
}

TEST(DdpStatic, LeavesUnusedParametersAloneFromTheFirstStepOn) {
  on_two_ranks({.static_graph = true}, [](int rank, TwoHeads& net, auto& model) {
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      model(input_of(rank), true, false).backward();
      expect_near(net->a->weight.grad(), {.45F, .9F, .6F, 1.2F}, "a.weight");
      expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
      EXPECT_FALSE(net->c->weight.grad().defined());
    }
  });
}

/// fc(x), recomputed in a backward pass within the backward pass.
struct Again : torch::autograd::Function<Again> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x,
                        torch::nn::Linear fc) {
    context->saved_data["fc_weight"] = fc->weight;
    context->saved_data["fc_bias"] = fc->bias;
    context->saved_data["x"] = x.detach();
    return fc(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const torch::AutoGradMode on(true);
    const Tensor x = context->saved_data["x"].toTensor().detach().requires_grad_();
    const Tensor y = torch::linear(x, context->saved_data["fc_weight"].toTensor(),
                                   context->saved_data["fc_bias"].toTensor());
    torch::autograd::backward({y}, {grads[0]});
    return {x.grad(), Tensor()};
  }
};

struct TwiceImpl : torch::nn::Module {
  torch::nn::Linear fc{2, 2};
  TwiceImpl() {
    register_module("fc", fc);
    torch::nn::init::eye_(fc->weight);
    torch::nn::init::zeros_(fc->bias);
  }
  Tensor forward(const Tensor& x) { return Again::apply(Again::apply(x, fc), fc).sum(); }
};
TORCH_MODULE(Twice);

TEST(DdpStatic, TakesSeveralGradientsOfOneParameter) {
  run_rank_threads(2, [](World world) {
    Twice net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.static_graph = true});
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      model(input_of(world.rank).requires_grad_()).backward();
      expect_near(net->fc->weight.grad(), {3, 6, 3, 6}, "twice the mean of x");
      expect_near(net->fc->bias.grad(), {2, 2}, "bias");
    }
  });
}

/// Twice, whose loss lies within the result of `wrap`.
template <class Wrap>
struct WithinImpl : torch::nn::Module {
  Wrap wrap;
  Twice twice = register_module("twice", Twice());
  Tensor loss;
  explicit WithinImpl(Wrap function) : wrap(std::move(function)) {}
  auto forward(const Tensor& x) {
    loss = twice(x);
    return wrap(loss);
  }
};

// Of a result where no tensor was found a nested backward pass would end the step.
template <class Wrap>
void expect_two_gradients_within(const Wrap& wrap) {
  run_rank_threads(2, [&](World world) {
    auto net = std::make_shared<WithinImpl<Wrap>>(wrap);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), {.static_graph = true});
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      const auto result = model(input_of(world.rank).requires_grad_());
      net->loss.backward();
      expect_near(net->twice->fc->weight.grad(), {3, 6, 3, 6}, "twice the mean of x");
    }
  });
}

TEST(DdpStatic, FindsTensorsAtAnyDepthOfTheResult) {
  expect_two_gradients_within([](const Tensor& loss) { return std::tuple(1, loss); });
  expect_two_gradients_within([](const Tensor& loss) { return std::optional(loss); });
  expect_two_gradients_within([](const Tensor& loss) {
    return std::map<std::string, Tensor>{{"loss", loss}};
  });
  using Deep = std::tuple<int, std::optional<std::vector<Tensor>>>;
  expect_two_gradients_within([](const Tensor& loss) {
    return std::map<std::string, Deep>{{"loss", Deep(1, std::vector{loss})}};
  });
}

TEST(DdpStatic, NamesTheParameterThatBreaksThePromise) {
  on_two_ranks({.static_graph = true}, [](int rank, TwoHeads&, auto& model) {
    const Tensor x = input_of(rank);
    model(x, true, false).backward();
    const Error more = error_of([&] { model(x, true, true).backward(); });
    EXPECT_EQ(more.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(more.what()).find("parameter 'c."), std::string::npos) << more.what();
    EXPECT_NE(std::string(more.what()).find("than the 0 of the first step"), std::string::npos);
  });
  on_two_ranks({.static_graph = true}, [](int rank, TwoHeads&, auto& model) {
    const Tensor x = input_of(rank);
    model(x, true, true).backward();
    const Error fewer = error_of([&] { model(x, true, false).backward(); });
    EXPECT_EQ(fewer.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(fewer.what()).find("first step came for 'c.weight', 'c.bias'"),
              std::string::npos)
        << fewer.what();
  });
}

TEST(DdpStatic, RanksMustAgreeInTheFirstStep) {
  on_two_ranks({.static_graph = true}, [](int rank, TwoHeads&, auto& model) {
    const Tensor loss = model(input_of(rank), true, rank == 1);
    const Error error = error_of([&] { loss.backward(); });
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_NE(std::string(error.what()).find("'c.weight' got 0 gradients on one rank and 1"),
              std::string::npos)
        << error.what();
  });
}

TEST(DdpStatic, IsNotForGraphsThatChange) {
  const DdpOptions both{.find_unused_parameters = true, .static_graph = true};
  const Error error = error_of([&] { both.validate(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(std::string(error.what()).find("find_unused_parameters and static_graph are both on"),
            std::string::npos)
      << error.what();
}

/// Exposes its only parameter.
struct OpenImpl : torch::nn::Module {
  Tensor w = register_parameter("w", torch::ones({2}));
  std::pair<Tensor, Tensor> forward(const Tensor& x) { return {(w * x).sum(), w}; }
};
TORCH_MODULE(Open);

TEST(DdpGraph, OutputsMayBeParameters) {
  run_rank_threads(2, [](World world) {
    Open net;
    auto model = DistributedDataParallel(net, ProcessGroup::create(world));
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      const auto [loss, w] = model(torch::full({2}, 1.0F + 2 * world.rank));
      (loss + w.sum()).backward();
      expect_near(net->w.grad(), {3, 3}, "w");
    }
  });
}

/// The heads' values are at different depths of the result; head c may have none.
struct DeepResultImpl : torch::nn::Module {
  using Named = std::map<std::string, std::pair<int, Tensor>>;
  using Listed = std::optional<std::vector<Tensor>>;
  TwoHeads heads = register_module("heads", TwoHeads());
  std::tuple<int, Named, Listed> forward(const Tensor& x, bool use_c) {
    const Tensor hidden = heads->a(x);
    Listed listed;
    if (use_c) listed = {heads->c(hidden).sum()};
    return {1, {{"b", {2, heads->b(hidden).sum()}}}, listed};
  }
};
TORCH_MODULE(DeepResult);

/// One step of two ranks; whether each uses head c.
void step_of_deep_result(int rank, DeepResult& net, DistributedDataParallel<DeepResult>& model,
                         bool first_uses_c, bool second_uses_c) {
  model.zero_grad();
  const bool use_c = rank == 0 ? first_uses_c : second_uses_c;
  const auto [number, named, listed] = model(input_of(rank), use_c);
  ASSERT_EQ(listed.has_value(), use_c);
  Tensor loss = named.at("b").second;
  if (listed) loss = loss + listed->front();
  loss.backward();
  expect_near(net->heads->b->weight.grad(), {.95F, 1.95F}, "b.weight");
}

TEST(DdpUnused, FindsWhatIsUsedAtAnyDepthOfTheResult) {
  run_rank_threads(2, [](World world) {
    DeepResult net;
    DistributedDataParallel<DeepResult> model(net, ProcessGroup::create(world), find_unused());
    auto& heads = *net->heads;
    for (int round = 0; round < 2; ++round) {
      step_of_deep_result(world.rank, net, model, false, false);
      expect_near(heads.a->weight.grad(), {.45F, .9F, .6F, 1.2F}, "a.weight");
      EXPECT_FALSE(heads.c->weight.grad().defined());
      step_of_deep_result(world.rank, net, model, false, true);
      expect_near(heads.a->weight.grad(), {.95F, 1.9F, 1.2F, 2.4F}, "a.weight");
      expect_near(heads.c->weight.grad(), {.6F, 1.25F}, "c.weight");
      step_of_deep_result(world.rank, net, model, true, true);
      expect_near(heads.a->weight.grad(), {1.2F, 2.4F, 1.5F, 3}, "a.weight");
      expect_near(heads.c->weight.grad(), {.95F, 1.95F}, "c.weight");
    }
  });
}

TEST(AtBeginOfBackward, LeavesNothingOnALeaf) {
  const auto counter = std::make_shared<int>();
  const Tensor leaf = torch::ones({2}, torch::requires_grad());
  for (int step = 0; step < 3; ++step) at_begin_of_backward(leaf, [counter] { ++*counter; });
  EXPECT_EQ(counter.use_count(), 1);
  {
    const Tensor output = leaf * 2;
    at_begin_of_backward(output, [counter] { ++*counter; });
    output.sum().backward();
    EXPECT_EQ(*counter, 1);
  }
  EXPECT_EQ(counter.use_count(), 1);
}

TEST(KeepWith, LastsAsLongAsTheTensorWhateverItsValues) {
  const auto kept = std::make_shared<int>();
  for (const bool requires_grad : {false, true}) {
    Tensor tensor = torch::ones({2}, torch::requires_grad(requires_grad));
    keep_with(tensor, kept);
    const Tensor copy = tensor.detach().clone();
    tensor.set_data(tensor.to(torch::kDouble));
    if (requires_grad) (tensor * tensor).sum().backward();
    EXPECT_EQ(kept.use_count(), 2);
    tensor = Tensor();
    EXPECT_EQ(kept.use_count(), 1) << "with a copy left";
  }
}

/// Two layers, of which others may have the first.
struct HeadImpl : torch::nn::Module {
  torch::nn::Linear shared{nullptr}, own{2, 1};
  explicit HeadImpl(torch::nn::Linear first) {
    shared = register_module("shared", std::move(first));
    register_module("own", own);
  }
  Tensor forward(const Tensor& x) { return own(shared(x)).sum(); }
};
TORCH_MODULE(Head);

TEST(DdpGraph, ModelsThatShareAParameterTakeTurns) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    const torch::nn::Linear shared(2, 2);
    Head one(shared), two(shared);
    DistributedDataParallel first(one, group), second(two, group);
    const Tensor x = input_of(world.rank);
    for (int step = 0; step < 3; ++step) {
      first.zero_grad();
      second.zero_grad();
      first(x).backward();
      const Tensor slope = one->own->weight.detach().flatten();
      EXPECT_TRUE(shared->bias.grad().allclose(slope));
      second(x).backward();
      EXPECT_TRUE(shared->bias.grad().allclose(slope + two->own->weight.detach().flatten()));
    }
  });
}

TEST(DdpGraph, OneBackwardThroughModelsThatShareAParameterIsRefused) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    const torch::nn::Linear shared(2, 2);
    Head one(shared), two(shared);
    DistributedDataParallel first(one, group), second(two, group);
    const Tensor x = input_of(world.rank);
    const Tensor loss = first(x) + second(x);
    const Error error = error_of([&] { loss.backward(); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    EXPECT_EQ(text.find("parameter 'shared."), 0) << text;
    EXPECT_NE(text.find("make one model of both modules"), std::string::npos) << text;
  });
}

TEST(DdpGraph, ANewModelOfAModuleMayReplaceOneThatStays) {
  run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    TwoHeads net;
    DistributedDataParallel before(net, group);
    const Tensor x = input_of(world.rank);
    before(x, true, true).backward();
    DistributedDataParallel after(net, group);
    for (int step = 0; step < 3; ++step) {
      for (auto* model : {&after, &before}) {
        model->zero_grad();
        (*model)(x, true, true).backward();
        expect_near(net->a->weight.grad(), {1.2F, 2.4F, 1.5F, 3}, "a.weight");
        expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
      }
    }
  });
}

// autograd::grad() runs through the model's output but needs no averaged gradients.
TEST(DdpGraph, GradientsOfInputsMayBeTakenBeforeBackward) {
  on_two_ranks({}, [](int rank, TwoHeads& net, auto& model) {
    const Tensor x = input_of(rank).requires_grad_();
    const Tensor loss = model(x, true, true);
    const auto slope = torch::autograd::grad({loss}, {x}, {}, true);
    EXPECT_TRUE(slope[0].defined());
    loss.backward();
    expect_near(net->b->weight.grad(), {.95F, 1.95F}, "b.weight");
  });
}

}  // namespace
}  // namespace lockstep
