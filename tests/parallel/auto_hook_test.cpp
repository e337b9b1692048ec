// The choice of the hook "auto" between none and bf16, and its effect on gradients. Times are given
// by the test.
#include "lockstep/parallel/auto_hook.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/distributed_data_parallel.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

namespace lockstep {
namespace {

using namespace testing;  // ranks.h and error_of.h
using torch::Tensor;

TEST(HookTrial, GoesBothWaysInTurnsAndCountsWhatIsWarm) {
  HookTrial trial;
  std::string ways;
  for (int step = 0; !trial.over(); ++step) {
    ways += trial.rounded() ? 'r' : 'n';
    trial.record(step);
  }
  EXPECT_EQ(ways, "nnnnnrrrrnnnnrrrr");
  EXPECT_EQ(std::ssize(ways), HookTrial::kSteps);
  // none: 2, 3, 4, 10, 11, 12; rounded: 6, 7, 8, 14, 15, 16.
  EXPECT_EQ(trial.medians(), (std::vector<double>{7, 11}));
}

TEST(HookTrial, OneSlowStepDoesNotDecide) {
  HookTrial trial;
  while (!trial.over()) trial.record(trial.rounded() ? 5 : 4);
  HookTrial disturbed;
  for (int step = 0; !disturbed.over(); ++step) {
    disturbed.record(step == 3 ? 1000 : disturbed.rounded() ? 5 : 4);
  }
  EXPECT_EQ(disturbed.medians(), trial.medians());
}

/// Reports given times instead of measured ones, the same in every step.
class Told : public AutoHook {
 public:
  Told(double none_ms, double bf16_ms) : none_ms_(none_ms), bf16_ms_(bf16_ms) {}

 protected:
  double time_that_counts(double /*backward_ms*/) const override {
    return is_noop() ? none_ms_ : bf16_ms_;
  }

 private:
  double none_ms_, bf16_ms_;
};

using HookOf = std::function<std::shared_ptr<CommHook>(int rank)>;
using Gradients = std::vector<Tensor>;  // by parameter
using AutoModel = DistributedDataParallel<torch::nn::Linear>;

/// 600 x 600 numbers are a bucket of their own with a hook, and are not packed without one.
AutoModel make_auto_model(World world, const HookOf& hook_of) {
  return {torch::nn::Linear(600, 600), ProcessGroup::create(world),
          DdpOptions{.bucket_cap_mb = 1, .comm_hook = hook_of(world.rank)}};
}

/// Gradients of a step, the same in each; bfloat16 cannot represent them.
Gradients step_of(AutoModel& model, int rank) {
  model.zero_grad();
  model(torch::full({1, 600}, 0.1 * (rank + 1))).sum().backward();
  Gradients gradients;
  for (const auto& parameter : model.parameters()) gradients.push_back(parameter.grad().clone());
  return gradients;
}

bool same(const Gradients& a, const Gradients& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return x.equal(y); });
}

Gradients one_step_with(const std::string& hook) {
  Gradients gradients;
  run_rank_threads(2, [&](World world) {
    AutoModel model = make_auto_model(world, [&](int) { return make_comm_hook(hook); });
    const auto own = step_of(model, world.rank);
    if (world.rank == 0) gradients = own;
  });
  return gradients;
}

/// Runs as many steps as the trial has, and a few more.
void expect_choice(const HookOf& hook_of, const std::string& choice, const std::string& line) {
  const Gradients exact = one_step_with("none"), chosen = one_step_with(choice);
  ASSERT_EQ(same(exact, chosen), choice == "none");
  ::testing::internal::CaptureStderr();
  run_rank_threads(2, [&](World world) {
    AutoModel model = make_auto_model(world, hook_of);
    for (int step = 0; step < HookTrial::kSteps + 3; ++step) {
      const bool open = step < HookTrial::kSteps;
      EXPECT_TRUE(same(step_of(model, world.rank), open ? exact : chosen)) << choice << " " << step;
    }
  });
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find(line), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST(AutoHook, IsExactUntilItHasChosen) {
  expect_choice([](int) { return std::make_shared<Told>(10, 9.4); }, "bf16",
                "comm_hook auto takes bf16: from here on gradients are rounded to bfloat16 on "
                "their way (backward() of the slowest rank: none 10.00 ms, bf16 9.40 ms)");
  expect_choice([](int) { return std::make_shared<Told>(10, 9.6); }, "none",
                "comm_hook auto takes none: gradients travel as they are (backward() of the "
                "slowest rank: none 10.00 ms, bf16 9.60 ms)");
}

TEST(AutoHook, TheSlowestRankDecidesForAll) {
  expect_choice([](int rank) { return std::make_shared<Told>(10, rank == 0 ? 1 : 11); }, "none",
                "none 10.00 ms, bf16 11.00 ms");
  expect_choice([](int rank) { return std::make_shared<Told>(rank == 0 ? 1 : 10, 5); }, "bf16",
                "none 10.00 ms, bf16 5.00 ms");
}

std::vector<CommHookState> saved_after(int steps, const HookOf& hook_of) {
  std::vector<CommHookState> saved;
  run_rank_threads(2, [&](World world) {
    AutoModel model = make_auto_model(world, hook_of);
    for (int step = 0; step < steps; ++step) step_of(model, world.rank);
    auto states = model.comm_hook_state();
    if (world.rank == 0) saved = std::move(states);
  });
  return saved;
}

/// Two layers, of which every step omits one.
struct WithSpareImpl : torch::nn::Module {
  torch::nn::Linear used = register_module("used", torch::nn::Linear(600, 600));
  torch::nn::Linear spare = register_module("spare", torch::nn::Linear(600, 600));
  Tensor forward(const Tensor& x) { return used(x).sum(); }
};
TORCH_MODULE(WithSpare);

TEST(AutoHook, GoesTogetherWithUnusedParameters) {
  const Gradients exact = one_step_with("none"), rounded = one_step_with("bf16");
  for (const bool fixed : {false, true}) {
    run_rank_threads(2, [&](World world) {
      WithSpare net;
      auto model = DistributedDataParallel(net, ProcessGroup::create(world),
                                           {.bucket_cap_mb = 1,
                                            .find_unused_parameters = !fixed,
                                            .static_graph = fixed,
                                            .comm_hook = std::make_shared<Told>(10, 5)});
      for (int step = 0; step < HookTrial::kSteps + 3; ++step) {
        model.zero_grad();
        model(torch::full({1, 600}, 0.1 * (world.rank + 1))).backward();
        const Gradients& want = step < HookTrial::kSteps ? exact : rounded;
        EXPECT_TRUE(same({net->used->weight.grad(), net->used->bias.grad()}, want)) << step;
        EXPECT_FALSE(net->spare->weight.grad().defined());
      }
    });
  }
}

TEST(AutoHook, ARunThatGoesOnKeepsTheChoice) {
  for (const bool rounded : {false, true}) {
    const Gradients kept = one_step_with(rounded ? "bf16" : "none");
    const HookOf before = [&](int) { return std::make_shared<Told>(10, rounded ? 5 : 20); };
    const HookOf other = [&](int) { return std::make_shared<Told>(10, rounded ? 20 : 5); };
    const auto saved = saved_after(HookTrial::kSteps, before);
    ASSERT_EQ(saved.size(), 2u);
    run_rank_threads(2, [&](World world) {
      AutoModel model = make_auto_model(world, other);
      EXPECT_EQ(model.load_comm_hook_state(saved[static_cast<size_t>(world.rank)]), "");
      for (int step = 0; step < HookTrial::kSteps + 3; ++step) {
        EXPECT_TRUE(same(step_of(model, world.rank), kept)) << rounded << " " << step;
      }
    });
  }
}

TEST(AutoHook, ARunThatGoesOnBeforeTheChoiceMeasuresAnew) {
  const auto saved =
      saved_after(HookTrial::kSteps - 1, [](int) { return std::make_shared<Told>(10, 5); });
  const Gradients exact = one_step_with("none");
  run_rank_threads(2, [&](World world) {
    const auto hook = std::make_shared<Told>(10, 20);
    AutoModel model = make_auto_model(world, [&](int) { return hook; });
    EXPECT_EQ(model.load_comm_hook_state(saved[static_cast<size_t>(world.rank)]), "");
    for (int step = 0; step < HookTrial::kSteps; ++step) {
      EXPECT_EQ(hook->choice(), AutoHook::Choice::kOpen);
      EXPECT_TRUE(same(step_of(model, world.rank), exact)) << step;
    }
    EXPECT_EQ(hook->choice(), AutoHook::Choice::kNone);
  });
}

TEST(AutoHook, RefusesAStateThatIsNoChoice) {
  for (const HookState& state :
       {HookState{}, HookState{{"choice", torch::full({1}, 3, torch::kLong)}},
        HookState{{"choice", torch::zeros({1})}}, HookState{{"step", torch::zeros({1})}}}) {
    const Error error = error_of([&] { AutoHook().load_state(state); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace lockstep
