// Steps with several optimizers: Recipe::training_step.

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <filesystem>

#include "lockstep/train/optimized_parts.h"
#include "lockstep/train/trainer.h"
#include "lockstep/weights.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Two networks of more than 1 MiB each, so that gradients are averaged where they are computed.
struct Pair final : Model {
  torch::nn::Linear maker = register_module("maker", torch::nn::Linear(48, 6000));
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(6000));
  torch::nn::Linear critic = register_module("critic", torch::nn::Linear(6000, 48));
  /// In no part, and with statistics of its own.
  torch::nn::BatchNorm1d fixed = register_module(
      "fixed", torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(48).affine(false)));

  at::Tensor forward(at::Tensor input) override { return maker(input.flatten(1)); }
};

/// The pair's norm belongs to its critic.
struct Judge final : torch::nn::Module {
  Judge(torch::nn::BatchNorm1d norm, torch::nn::Linear critic) {
    register_module("norm", norm);
    register_module("critic", critic);
  }
};

std::unique_ptr<torch::optim::Optimizer> make_sgd(torch::nn::Module& module) {
  return std::make_unique<torch::optim::SGD>(module.parameters(), torch::optim::SGDOptions(0.05));
}

struct PairRun {
  std::vector<at::Tensor> weights;  ///< Parameters and buffers.
  std::vector<std::pair<std::string, double>> logged;
  int copied = 0;
  std::string error;
};

at::Tensor judged(Pair& pair, const at::Tensor& made) {
  return pair.critic(pair.norm(made)).square().mean();
}

void judge_then_make(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  step.optimize("judge", [&](const Batch& batch) {
    // Twice through the same network, and through the other.
    const auto input = pair.fixed(batch.images.flatten(1));
    return judged(pair, pair.maker(input)) - judged(pair, pair.maker(input * 0.5)) * 0.5 + 1;
  });
  step.optimize("maker", [&](const Batch& batch) {
    EXPECT_FALSE(pair.critic->weight.requires_grad());
    return judged(pair, pair.maker(batch.images.flatten(1)));
  });
  EXPECT_TRUE(pair.critic->weight.requires_grad());
}

/// Each network once: a sum of two gradients would be computed outside the averaged memory.
void judge_once(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  for (const char* part : {"judge", "maker"}) {
    step.optimize(part, [&](const Batch& batch) {
      return judged(pair, pair.maker(batch.images.flatten(1)));
    });
  }
}

thread_local int rank_of_pair = 0;  // of this thread's run

/// One rank alone has a loss that is no number.
void make_badly(TrainingStep& step) {
  auto& pair = step.network<Pair>();
  step.optimize("maker", [&](const Batch& batch) {
    const auto loss = pair.maker(batch.images.flatten(1)).mean();
    return rank_of_pair == 1 ? loss * std::nan("") : loss;
  });
}

using StepOfPair = void (*)(TrainingStep&);

class PairRecorder final : public Callback {
 public:
  explicit PairRecorder(PairRun& run) : run_(run) {}
  void on_step(Trainer&, const StepReport& report) override {
    run_.logged = report.logged;
    if (report.optimizer_steps > 2) run_.copied += report.timings.copied;
  }

 private:
  PairRun& run_;
};

PairRun run_pair_rank(const World& world, const Config& config, StepOfPair step) {
  static std::mutex building;
  rank_of_pair = world.rank;
  auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(60)});
  std::shared_ptr<Pair> pair;
  {
    const std::lock_guard lock(building);
    torch::manual_seed(5);
    pair = std::make_shared<Pair>();
  }
  const auto judge = std::make_shared<Judge>(pair->norm, pair->critic);
  const std::vector<OptimizedPart> parts = {{"judge", judge, make_sgd(*judge)},
                                            {"maker", pair->maker.ptr(), make_sgd(*pair->maker)}};
  const auto data = std::make_shared<const TinyData>();
  const VirtualRankRange virtual_ranks = virtual_ranks_of(config, world);
  std::vector<DistributedSampler> samplers;
  for (int i = virtual_ranks.first; i < virtual_ranks.first + virtual_ranks.count; ++i) {
    samplers.emplace_back(data->size(), i, virtual_ranks.total);
  }
  Loader loader(
      image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
      {.batch_size = config.train.loader.batch_size * virtual_ranks.count, .drop_remainder = true});
  const auto task = make_task(config);
  PairRun run;
  TrainerParts trainer_parts{config,   world.rank,          world.size, group,
                             pair,     *parts[0].optimizer, *task,      loader,
                             samplers, [] { return 0; }};
  trainer_parts.optimized = parts;
  trainer_parts.training_step = step;
  Trainer trainer(std::move(trainer_parts), {});
  trainer.add(std::make_shared<PairRecorder>(run));
  try {
    trainer.fit();
  } catch (const Error& error) {
    run.error = error.what();
  }
  for (const auto& tensor : pair->parameters()) run.weights.push_back(tensor.detach().clone());
  for (const auto& tensor : pair->buffers()) run.weights.push_back(tensor.clone());
  return run;
}

std::vector<PairRun> run_pair(int ranks, const Config& config, StepOfPair step = judge_then_make) {
  set_threads(1);
  std::vector<PairRun> runs(static_cast<size_t>(ranks));
  testing::run_rank_threads(ranks, [&](const World& world) {
    runs[static_cast<size_t>(world.rank)] = run_pair_rank(world, config, step);
  });
  return runs;
}

Config pair_config() {
  auto config = tiny_config();
  config.scheduler.num_epochs = 2;
  config.train.loader.batch_size = 3;
  config.parallel.virtual_ranks = 4;
  return config;
}

TEST(ManualSteps, HaveTheSameBitsOnAnyRanks) {
  const auto one = run_pair(1, pair_config())[0];
  ASSERT_EQ(one.logged.size(), 2U);
  EXPECT_EQ(one.logged[0].first, "loss_judge");
  EXPECT_EQ(one.logged[1].first, "loss_maker");
  EXPECT_TRUE(std::isfinite(one.logged[0].second));
  for (const int ranks : {2, 4}) {
    for (const auto& run : run_pair(ranks, pair_config())) {
      EXPECT_EQ(run.error, "");
      ASSERT_EQ(run.weights.size(), one.weights.size());
      for (size_t i = 0; i < one.weights.size(); ++i) {
        EXPECT_TRUE(run.weights[i].equal(one.weights[i])) << "tensor " << i << " of " << ranks;
      }
      EXPECT_EQ(run.logged, one.logged);
    }
  }
}

TEST(ManualSteps, AverageBothNetworksWithoutACopy) {
  auto config = pair_config();
  config.parallel.virtual_ranks = 0;
  const auto runs = run_pair(2, config, judge_once);
  EXPECT_EQ(runs[0].error, "");
  EXPECT_EQ(runs[0].copied, 0);
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(runs[0].weights[i].equal(runs[1].weights[i])) << i;
}

TEST(ManualSteps, ABadLossOfOneRankReachesTheWeightsOfNone) {
  auto config = pair_config();
  config.parallel.virtual_ranks = 0;
  torch::manual_seed(5);
  const auto fresh = Pair().parameters();
  for (const auto& run : run_pair(2, config, make_badly)) {
    EXPECT_NE(run.error.find("epoch: 1 step: 1. Invalid loss of 'maker', terminating training: it "
                             "is not a finite number on rank 1."),
              std::string::npos)
        << run.error;
    for (size_t i = 0; i < fresh.size(); ++i) EXPECT_TRUE(run.weights[i].equal(fresh[i])) << i;
  }
}

/// Points at 16 places; nothing is learnt from them here.
class Places final : public BatchMaker {
 public:
  int64_t size() const override { return 16; }
  Batch make(const BatchRows& rows) const override {
    return {indices_of(rows).to(at::kFloat).unsqueeze(1) / 16, {}, rows.num_counted};
  }
};

struct Two final : Model {
  torch::nn::Linear left = register_module("left", torch::nn::Linear(1, 1));
  torch::nn::Linear right = register_module("right", torch::nn::Linear(1, 1));
};

std::unique_ptr<torch::optim::Optimizer> make_adam(torch::nn::Module& module) {
  return std::make_unique<torch::optim::Adam>(module.parameters(), torch::optim::AdamOptions(0.1));
}

void step_both(TrainingStep& step) {
  auto& two = step.network<Two>();
  for (int i = 0; i < 2; ++i) {
    step.optimize("left", [&](const Batch& batch) { return two.left(batch.images).mean(); });
  }
  step.optimize("right", [&](const Batch& batch) {
    return (two.right(batch.images) - two.left(batch.images)).square().mean();
  });
}

class ManualRecipe : public ::testing::Test {
 protected:
  Recipe recipe() const {
    Recipe recipe;
    recipe.name = "two";
    recipe.network = [](int64_t) { return std::make_shared<Two>(); };
    recipe.data = [](const DatasetUse&) { return std::make_unique<const Places>(); };
    recipe.optimizers = {{"left", make_adam}, {"right", make_sgd}};
    recipe.training_step = step_both;
    recipe.settings = {"train.ckpt_save_dir=" + (folder_ / "out").string(),
                       "scheduler.num_epochs=4", "scheduler.lr=0.1", "scheduler.warmup_epochs=0",
                       "train.loader.batch_size=4"};
    return recipe;
  }
  TensorMap saved(const std::string& file) const {
    return load_tensors(folder_ / "out" / "latest" / (file + ".safetensors")).tensors;
  }
  static std::string refusal(const Recipe& given) {
    return error_of([&] { train(given, World::join()); }).what();
  }

  const TempFolder folder_;
};

TEST_F(ManualRecipe, EachPartHasItsOptimizerAndARunResumes) {
  EXPECT_EQ(train(recipe(), World::join()), 0);
  const auto whole = saved("model"), adam = saved("optimizer"), sgd = saved("optimizer_right");
  EXPECT_EQ(adam.at("left.weight.step").item<int64_t>(), 32) << "two steps of 16";
  EXPECT_EQ(adam.count("right.weight.step"), 0U);
  auto first = recipe();
  first.settings.emplace_back("train.max_steps=6");
  EXPECT_EQ(train(first, World::join()), 0);
  auto rest = recipe();
  rest.settings.emplace_back("model.resume=True");
  EXPECT_EQ(train(rest, World::join()), 0);
  for (const auto& [name, tensor] : saved("model")) EXPECT_TRUE(tensor.equal(whole.at(name)));
  for (const auto& [name, tensor] : saved("optimizer")) EXPECT_TRUE(tensor.equal(adam.at(name)));
  EXPECT_EQ(saved("optimizer_right").size(), sgd.size());
  rest.optimizers[1].make = make_adam;
  EXPECT_NE(refusal(rest).find("the optimizer of 'right' was SGD, now it is Adam"),
            std::string::npos);
}

TEST_F(ManualRecipe, AResumeWithOtherOptimizersNamesThem) {
  auto given = recipe();
  for (auto& each : given.optimizers) each.make = make_adam;
  given.settings.insert(given.settings.end(), {"train.max_steps=2", "model.resume=True"});
  EXPECT_EQ(train(given, World::join()), 0);
  const std::string checkpoint = (folder_ / "out/step_000002").string();
  std::swap(given.optimizers[0], given.optimizers[1]);
  EXPECT_EQ(refusal(given), checkpoint +
                                ": Recipe::optimizers began with 'left' when this was saved, and "
                                "begins with 'right' now: keep their order");
  given.network = [](int64_t) {
    auto two = std::make_shared<Two>();
    two->register_module("third", torch::nn::Linear(1, 1));
    return two;
  };
  std::swap(given.optimizers[0], given.optimizers[1]);
  given.optimizers.push_back({"third", make_adam});
  EXPECT_EQ(refusal(given), checkpoint +
                                ": behind the first, Recipe::optimizers were 'right' when this was "
                                "saved, and are 'right', 'third' now");
  given = recipe();
  given.settings.emplace_back("model.resume=True");
  given.optimizers.clear();
  given.training_step = {};
  EXPECT_EQ(refusal(given), checkpoint +
                                ": behind the first, Recipe::optimizers were 'right' when this was "
                                "saved, and are none now");
}

TEST_F(ManualRecipe, ABadLossIsNotedBeforeItsUpdate) {
  auto given = recipe();
  std::shared_ptr<Two> two;
  given.network = [&](int64_t) { return two = std::make_shared<Two>(); };
  std::vector<at::Tensor> before;
  given.training_step = [&](TrainingStep& step) {
    const bool bad = step.number() == 2;
    for (const auto& parameter : two->parameters()) {
      if (bad) before.push_back(parameter.detach().clone());
    }
    step.optimize("right", [&](const Batch& batch) {
      const auto loss = two->right(batch.images).mean();
      return bad ? loss * std::nan("") : loss;
    });
  };
  EXPECT_NE(refusal(given).find("epoch: 1 step: 3. Invalid loss of 'right', terminating training"),
            std::string::npos);
  const auto after = two->parameters();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(after[i].equal(before[i])) << i;
}

TEST_F(ManualRecipe, APartBeforeABadLossKeepsItsUpdateInMemoryAlone) {
  auto given = recipe();
  std::shared_ptr<Two> two;
  given.network = [&](int64_t) { return two = std::make_shared<Two>(); };
  const auto values = [&] {
    std::vector<at::Tensor> copies;
    for (const auto& parameter : two->parameters()) copies.push_back(parameter.detach().clone());
    return copies;
  };
  std::vector<at::Tensor> after_epoch, before;
  given.training_step = [&](TrainingStep& step) {
    const bool bad = step.number() == 5;  // an epoch has four
    if (step.number() == 4) after_epoch = values();
    if (bad) before = values();
    step.optimize("left", [&](const Batch& batch) { return two->left(batch.images).mean(); });
    step.optimize("right", [&](const Batch& batch) {
      const auto loss = two->right(batch.images).mean();
      return bad ? loss * std::nan("") : loss;
    });
  };
  EXPECT_NE(refusal(given).find("epoch: 2 step: 2. Invalid loss of 'right', terminating training"),
            std::string::npos);
  const auto after = values();
  ASSERT_EQ(after.size(), 4U);
  for (const size_t left : {0U, 1U}) EXPECT_FALSE(after[left].equal(before[left])) << left;
  for (const size_t right : {2U, 3U}) EXPECT_TRUE(after[right].equal(before[right])) << right;
  const auto kept = saved("model");
  EXPECT_TRUE(kept.at("left.weight").equal(after_epoch[0]));
  EXPECT_TRUE(kept.at("right.weight").equal(after_epoch[2]));
}

TEST_F(ManualRecipe, MistakesAreOneLine) {
  auto given = recipe();
  given.optimizers.clear();
  EXPECT_EQ(refusal(given), "train(recipe): training_step and optimizers belong together");
  given = recipe();
  given.loss = [](const Tensors& outputs, const Tensors&) { return outputs[0].mean(); };
  EXPECT_EQ(refusal(given), "train(recipe): training_step takes the place of loss and optimizer");
  given = recipe();
  given.optimizers[0].part = "lefd";
  EXPECT_EQ(refusal(given),
            "train(recipe): the network has no module 'lefd' for an optimizer, did "
            "you mean 'left'?");
  given = recipe();
  given.optimizers.pop_back();
  EXPECT_EQ(refusal(given),
            "train(recipe): the parameter 'right.weight' is in 0 of the parts with "
            "an optimizer, and must be in one");
  given = recipe();
  given.settings.emplace_back("train.gradient_accumulation_steps=2");
  EXPECT_EQ(refusal(given),
            "train(recipe): a recipe with training_step needs "
            "train.gradient_accumulation_steps=1");
  given = recipe();
  given.training_step = [](TrainingStep& step) {
    step.optimize("rihgt", [](const Batch&) { return at::Tensor(); });
  };
  EXPECT_EQ(refusal(given),
            "TrainingStep::optimize: the recipe has no optimizer of 'rihgt', did you mean "
            "'right'?");
  given.training_step = [](TrainingStep& step) {
    step.optimize("right", [](const Batch& batch) { return batch.images; });
  };
  EXPECT_EQ(refusal(given),
            "TrainingStep::optimize('right'): the loss is 4 numbers, not one number");
}

}  // namespace
}  // namespace lockstep
