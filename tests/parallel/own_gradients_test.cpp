// Programs that own the memory of gradients, or keep handles and views of it: after backward() they
// read the average there. Ranks are threads.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include <vector>

#include "lockstep/distributed_data_parallel.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using torch::Tensor;
using torch::nn::Linear;

/// Two large matrices (gradients of 1 MiB have memory of their own) and small ones. Registered in
/// the order of their gradients in backward, so that the buckets are formed anew after the first
/// step.
struct MixedImpl : torch::nn::Module {
  MixedImpl() {
    last = register_module("last", torch::nn::Linear(512, 4));
    second = register_module("second", torch::nn::Linear(600, 512));
    first = register_module("first", torch::nn::Linear(512, 600));
  }
  Tensor forward(const Tensor& x) { return last(second(first(x))); }
  torch::nn::Linear first{nullptr}, second{nullptr}, last{nullptr};
};
TORCH_MODULE(Mixed);

/// For linear layers and a sum, every gradient is proportional to the rank's input.
Tensor input_for(int rank, int64_t width = 512) {
  return torch::ones({1, width}) * (1 + 2 * rank);
}

/// The average of the gradients of two ranks' inputs, for the same weights, without any averaging.
std::vector<Tensor> averages_of(const Tensor& loss, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (auto& gradient : torch::autograd::grad({loss}, parameters)) {
    gradients.push_back(gradient.clone());
  }
  return gradients;
}

std::vector<Tensor> averages_of(Mixed& net) {
  return averages_of(net->forward(torch::ones({1, 512}) * 2).sum(), net->parameters());
}

void expect_close(const Tensor& value, const Tensor& wanted, const std::string& what) {
  EXPECT_TRUE(torch::allclose(value, wanted.view_as(value), 1e-3, 1e-4))
      << what << ": " << value.flatten()[0].item<float>() << ", not "
      << wanted.flatten()[0].item<float>();
}

struct Case {
  DdpOptions options{};
  int steps = 4;
};

/// Trains on two ranks. The function own(net) sets or keeps gradients and returns the tensors that
/// the program reads. It is called before each backward() until it returns some.
template <class Own>
void expect_averages(const Case& given, const Own& own) {
  testing::run_rank_threads(2, [&](World world) {
    at::set_num_threads(1);
    auto group = ProcessGroup::create(world);
    Mixed net;
    DistributedDataParallel<Mixed> model(net, group, given.options);
    const auto wanted = averages_of(net);
    std::vector<Tensor> seen;
    for (int step = 0; step < given.steps; ++step) {
      for (auto& parameter : net->parameters()) {  // as optimizers of libtorch 1.13 do
        if (parameter.grad().defined()) parameter.mutable_grad().zero_();
      }
      if (seen.empty()) seen = own(net);
      model.forward(input_for(world.rank)).sum().backward();
      if (seen.empty()) continue;
      for (size_t i = 0; i < seen.size(); ++i) {
        const auto what = "rank " + std::to_string(world.rank) + " step " + std::to_string(step) +
                          " parameter " + std::to_string(i);
        expect_close(seen[i], wanted[i], what);
        expect_close(net->parameters()[i].grad(), wanted[i], what + " .grad");
      }
    }
  });
}

/// One buffer for all gradients; each .grad is a view of it.
template <class Net>
std::vector<Tensor> give_flat_buffer(const Net& net) {
  int64_t total = 0;
  for (const auto& parameter : net->parameters()) total += parameter.numel();
  const Tensor flat = torch::zeros({total});
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (auto& parameter : net->parameters()) {
    pieces.push_back(flat.narrow(0, at, parameter.numel()));
    parameter.mutable_grad() = flat.narrow(0, at, parameter.numel()).view_as(parameter);
    at += parameter.numel();
  }
  return pieces;
}

std::vector<Tensor> keep_handles(const Mixed& net) {
  std::vector<Tensor> kept;
  for (const auto& parameter : net->parameters()) {
    if (parameter.grad().defined()) kept.push_back(parameter.grad());
  }
  return kept;
}

std::vector<Tensor> keep_views(const Mixed& net) {
  std::vector<Tensor> kept;
  for (const auto& gradient : keep_handles(net)) kept.push_back(gradient.view(-1));
  return kept;
}

TEST(OwnGradients, AFlatBufferHoldsTheAverage) {
  expect_averages({}, give_flat_buffer<Mixed>);
  expect_averages({.options = {.bucket_cap_mb = 0.001}}, give_flat_buffer<Mixed>);
}

TEST(OwnGradients, HandlesOfEarlierGradientsHoldTheAverage) {
  expect_averages({}, keep_handles);
}

TEST(OwnGradients, ViewsOfEarlierGradientsHoldTheAverage) {
  expect_averages({}, keep_views);
}

TEST(OwnGradients, OnesThatTheProgramPresetAreFilled) {
  expect_averages({}, [](const Mixed& net) {
    for (auto& parameter : net->parameters()) {
      parameter.mutable_grad() = torch::zeros_like(parameter);
    }
    return keep_handles(net);
  });
}

// Memory unknown to libtorch, of which the program keeps only the addresses.
TEST(OwnGradients, SoIsMemoryThatIsNotLibtorchs) {
  std::vector<std::vector<float>> memory[2];
  testing::run_rank_threads(2, [&](World world) {
    auto group = ProcessGroup::create(world);
    Mixed net;
    DistributedDataParallel<Mixed> model(net, group);
    auto& own = memory[world.rank];
    for (auto& parameter : net->parameters()) {
      own.emplace_back(static_cast<size_t>(parameter.numel()), 0.0F);
    }
    for (size_t i = 0; i < own.size(); ++i) {
      Tensor parameter = net->parameters()[i];
      parameter.mutable_grad() = torch::from_blob(own[i].data(), parameter.sizes());
    }
    const auto wanted = averages_of(net);
    for (int step = 0; step < 3; ++step) {
      for (auto& each : own) std::fill(each.begin(), each.end(), 0.0F);
      model.forward(input_for(world.rank)).sum().backward();
      for (size_t i = 0; i < own.size(); ++i) {
        expect_close(torch::from_blob(own[i].data(), wanted[i].sizes()), wanted[i],
                     "parameter " + std::to_string(i));
      }
    }
  });
}

TEST(OwnGradients, HoldsWithAHookToo) {
  for (const auto& own : {&give_flat_buffer<Mixed>, &keep_handles}) {
    testing::run_rank_threads(2, [&](World world) {
      auto group = ProcessGroup::create(world);
      Mixed net;
      DistributedDataParallel<Mixed> model(net, group, {.comm_hook = make_comm_hook("bf16")});
      const auto wanted = averages_of(net);
      std::vector<Tensor> seen;
      for (int step = 0; step < 4; ++step) {
        for (auto& parameter : net->parameters()) {
          if (parameter.grad().defined()) parameter.mutable_grad().zero_();
        }
        if (seen.empty()) seen = own(net);
        model.forward(input_for(world.rank)).sum().backward();
        for (size_t i = 0; i < seen.size(); ++i) {
          EXPECT_TRUE(torch::allclose(seen[i], wanted[i].view_as(seen[i]), 0.03, 0.03)) << i;
        }
      }
    });
  }
}

// Accumulated in the program's buffer, then averaged there.
TEST(OwnGradients, AccumulationEndsInTheFlatBuffer) {
  testing::run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    Mixed net;
    DistributedDataParallel<Mixed> model(net, group);
    const auto wanted = averages_of(net);
    const auto seen = give_flat_buffer(net);
    for (int step = 0; step < 3; ++step) {
      for (const auto& piece : seen) piece.zero_();
      {
        const auto hold = model.no_sync();
        model.forward(input_for(world.rank)).sum().backward();
      }
      model.forward(input_for(world.rank)).sum().backward();
      for (size_t i = 0; i < seen.size(); ++i) {
        expect_close(seen[i], wanted[i] * 2, "parameter " + std::to_string(i));
      }
    }
  });
}

/// A layer that every rank uses, and one that only some use.
struct Halves : torch::nn::Module {
  explicit Halves(int64_t width) : used(width, width), other(width, width) {
    register_module("used", used);
    register_module("other", other);
  }
  Tensor forward(const Tensor& x, bool use_other) {
    const Tensor sum = used(x).sum();
    return use_other ? sum + other(x).sum() : sum;
  }
  torch::nn::Linear used, other;
};

// Small parameters, which are packed, and large ones. `keep`: a flat buffer, or earlier handles.
TEST(OwnGradients, OfUnusedParametersToo) {
  for (const int64_t width : {4, 600}) {
    testing::run_rank_threads(2, [&](World world) {
      auto net = std::make_shared<Halves>(width);
      auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                           DdpOptions{.find_unused_parameters = true});
      Tensor flat = torch::zeros({width * width});
      net->other->weight.mutable_grad() = flat.view({width, width});
      Tensor handle;
      for (int step = 0; step < 4; ++step) {
        flat.zero_();
        if (handle.defined()) handle.zero_();
        const bool use = world.rank == 1 && step != 2;  // in step 2 no rank does
        model(input_for(world.rank, width), use).backward();
        EXPECT_EQ(flat[0].item<float>(), step == 2 ? 0 : 1.5F) << "step " << step;
        EXPECT_EQ(net->other->weight.grad()[0][0].item<float>(), step == 2 ? 0 : 1.5F);
        if (!handle.defined()) handle = net->other->bias.grad();
        EXPECT_EQ(handle[0].item<float>(), step == 2 ? 0 : 0.5F) << "step " << step;
        EXPECT_EQ(net->other->bias.grad().data_ptr(), handle.data_ptr());
      }
    });
  }
}

// A gradient that no rank used keeps its value, even if it lies in its bucket.
TEST(OwnGradients, AHandleOfWhatNobodyUsesKeepsItsValue) {
  testing::run_rank_threads(2, [](World world) {
    auto net = std::make_shared<Halves>(4);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                         DdpOptions{.find_unused_parameters = true});
    const Tensor x = input_for(world.rank, 4);
    for (int step = 0; step < 2; ++step) {
      model.zero_grad();
      model(x, true).backward();
    }
    const Tensor handle = net->other->bias.grad();
    handle.fill_(3.0F + static_cast<float>(world.rank));
    net->used->weight.mutable_grad().reset();
    model(x, false).backward();
    EXPECT_EQ(handle[0].item<float>(), 3.0F + static_cast<float>(world.rank));
    EXPECT_EQ(net->other->bias.grad()[0].item<float>(), 3.0F + static_cast<float>(world.rank));
  });
}

// A rank that has run out of data gets the others' average in its own memory.
TEST(OwnGradients, OfARankThatRanOutToo) {
  testing::run_rank_threads(2, [](World world) {
    Mixed net;
    DistributedDataParallel<Mixed> model(net, ProcessGroup::create(world));
    const auto wanted = averages_of(net);
    const auto seen = give_flat_buffer(net);
    int shadowed = 0;
    JoinOptions options{.divide_by_active = true};
    options.on_shadow_step = [&] {
      ++shadowed;
      expect_close(seen[0], wanted[0], "weight");
      expect_close(seen[1], wanted[1], "bias");
      for (const auto& piece : seen) piece.zero_();
    };
    model.join(
        [&] {
          for (int step = 0; step < (world.rank == 0 ? 1 : 3); ++step) {
            for (const auto& piece : seen) piece.zero_();
            model.forward(torch::ones({1, 512}) * 2).sum().backward();
          }
        },
        options);
    EXPECT_EQ(shadowed, world.rank == 0 ? 2 : 0);
  });
}

enum class Emptying { kFlatBuffer, kZeroed, kReset };

/// The weights of a layer on two ranks after three steps of Adam, before join() makes them equal.
/// Only the first step may use the layer. Rank 0 has data for `batches` steps.
std::vector<Tensor> train_beyond_the_data(const DdpOptions& options, int64_t width, int batches,
                                          Emptying how) {
  std::vector<Tensor> weights(2);
  testing::run_rank_threads(2, [&](World world) {
    auto net = std::make_shared<Halves>(width);
    auto model = DistributedDataParallel(net, ProcessGroup::create(world), options);
    // The decay moves weights with a gradient of zero, but not those without a gradient.
    torch::optim::Adam optimizer(net->parameters(),
                                 torch::optim::AdamOptions(0.1).weight_decay(0.1));
    if (how == Emptying::kFlatBuffer) give_flat_buffer(net);
    const auto empty = [&] {
      if (how == Emptying::kReset) return model.zero_grad();
      for (auto& parameter : net->parameters()) {
        if (parameter.grad().defined()) parameter.mutable_grad().zero_();
      }
    };
    const void* const own =
        net->other->weight.grad().defined() ? net->other->weight.grad().data_ptr() : nullptr;
    auto& weight = weights[static_cast<size_t>(world.rank)];
    const auto update = [&] {
      optimizer.step();
      weight = net->other->weight.detach().clone();
      if (own != nullptr) {
        EXPECT_EQ(net->other->weight.grad().data_ptr(), own);
      }
    };
    JoinOptions join{.divide_by_active = true};
    join.on_shadow_step = update;
    model.join(
        [&] {
          for (int step = 0; step < (world.rank == 0 ? batches : 3); ++step) {
            empty();
            const bool use = step == 0 && options.find_unused_parameters;
            model(input_for(0, width), use).backward();
            update();
          }
        },
        join);
  });
  return weights;
}

// Else the optimizers' states and the weights of the ranks diverge.
TEST(OwnGradients, OptimizersInTheShadowStepWhatNobodyUsesAsTheOthersDo) {
  for (const bool is_static : {false, true}) {
    const DdpOptions options{.find_unused_parameters = !is_static, .static_graph = is_static};
    for (const auto how : {Emptying::kFlatBuffer, Emptying::kZeroed, Emptying::kReset}) {
      for (const int64_t width : {4, 600}) {
        for (const int batches : {0, 1}) {
          const auto weights = train_beyond_the_data(options, width, batches, how);
          EXPECT_TRUE(weights[0].equal(weights[1]))
              << "static " << is_static << " emptying " << static_cast<int>(how) << " width "
              << width << " batches " << batches;
        }
      }
    }
  }
}

TEST(OwnGradients, VirtualRanksFillThemToo) {
  for (const int ranks : {1, 2, 3}) {
    testing::run_rank_threads(ranks, [&](World world) {
      Mixed net;
      DistributedDataParallel<Mixed> model(net, ProcessGroup::create(world), {.virtual_ranks = 4});
      const auto wanted = averages_of(net);
      const auto seen = give_flat_buffer(net);
      for (int step = 0; step < 3; ++step) {
        for (const auto& piece : seen) piece.zero_();
        model.for_each_virtual_rank(
            [&](int virtual_rank) { model.forward(input_for(virtual_rank % 2)).sum().backward(); });
        for (size_t i = 0; i < seen.size(); ++i) {
          expect_close(seen[i], wanted[i], "parameter " + std::to_string(i));
          expect_close(net->parameters()[i].grad(), wanted[i], "grad " + std::to_string(i));
        }
      }
    });
  }
}

// The gradient goes through both; each has its own group, or they share one.
TEST(OwnGradients, TwoModelsInOneBackward) {
  for (const bool one_group : {true, false}) {
    testing::run_rank_threads(2, [&](World world) {
      auto group = ProcessGroup::create(world);
      auto other = one_group ? group : group.subgroup({0, 1});
      Linear first(600, 600), second(600, 600);
      DistributedDataParallel<Linear> a(first, group), b(second, other);
      auto parameters = first->parameters();
      for (auto& parameter : second->parameters()) parameters.push_back(parameter);
      const auto output = second->forward(first->forward(torch::ones({1, 600}) * 2));
      const auto wanted = averages_of(output.sum(), parameters);
      std::vector<Tensor> seen = give_flat_buffer(first);
      for (int step = 0; step < 3; ++step) {
        for (const auto& piece : seen) piece.zero_();
        b.zero_grad();
        b.forward(a.forward(input_for(world.rank, 600))).sum().backward();
        EXPECT_EQ(a.timings().copied, 1) << "step " << step;  // the buffer's gradient
        EXPECT_EQ(b.timings().copied, 0) << "step " << step;
        for (size_t i = 0; i < seen.size(); ++i) expect_close(seen[i], wanted[i], "first");
        for (size_t i = 0; i < seen.size(); ++i) {
          expect_close(second->parameters()[i].grad(), wanted[i + 2], "second");
        }
      }
    });
  }
}

// Blocks of shared memory are for gradients, not for tensors that the program makes meanwhile.
TEST(OwnGradients, SnapshotsAndTwoModelsLeaveZeroCopy) {
  testing::run_rank_threads(2, [](World world) {
    auto group = ProcessGroup::create(world);
    Linear first(600, 600), second(600, 600);
    DistributedDataParallel<Linear> a(first, group), b(second, group);
    std::vector<Tensor> snapshots;
    const auto keep = [&](const Linear& net) { snapshots.push_back(net->weight.detach().clone()); };
    for (int step = 0; step < 3; ++step) {
      a.zero_grad();
      b.zero_grad();
      {
        const auto hold_a = a.no_sync();
        const auto hold_b = b.no_sync();
        const Tensor hidden = a.forward(input_for(world.rank, 600));
        keep(first);
        b.forward(hidden).sum().backward();
        keep(first);
      }
      const Tensor hidden = a.forward(input_for(world.rank, 600));
      keep(first);
      const Tensor loss = b.forward(hidden).sum();
      keep(second);
      loss.backward();
      EXPECT_EQ(a.timings().copied, 0) << "step " << step;
      EXPECT_EQ(b.timings().copied, 0) << "step " << step;
      keep(first);
    }
  });
}

TEST(OwnGradients, LargeOnesThatAreCopiedInEachStepAreNamedOnce) {
  ::testing::internal::CaptureStderr();
  testing::run_rank_threads(2, [](World world) {
    Mixed net;
    DistributedDataParallel<Mixed> model(net, ProcessGroup::create(world));
    give_flat_buffer(net);
    for (int step = 0; step < 6; ++step) {
      model.forward(input_for(world.rank)).sum().backward();
      EXPECT_EQ(model.timings().copied, 2);
    }
  });
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto at = log.find("large gradients are copied in each step");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_NE(log.find("'first.weight'"), std::string::npos) << log;
  EXPECT_EQ(log.find("large gradients", at + 1), std::string::npos) << log;
}

}  // namespace
}  // namespace lockstep
