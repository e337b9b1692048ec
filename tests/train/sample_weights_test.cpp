// Training samples that are drawn by weights.

#include "lockstep/train/sample_weights.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "lockstep/base/file.h"
#include "lockstep/error.h"
#include "lockstep/model.h"
#include "lockstep/train.h"
#include "lockstep/train/run/run.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/config/configs.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

TEST(BalancedWeights, OfAClassAddUpToOne) {
  const std::vector<int64_t> labels = {2, 0, 2, 2, 2, 0, 5};
  const auto label = [&](int64_t sample) { return labels.at(static_cast<size_t>(sample)); };
  const auto weights = balanced_weights(7, label);
  EXPECT_EQ(weights.values, (std::vector<double>{0.25, 0.5, 0.25, 0.25, 0.25, 0.5, 1}));
  EXPECT_EQ(weights.note,
            "sampler balanced: each of 3 classes is drawn as often as any other (they have 1 to 4 "
            "samples)");
  EXPECT_EQ(balanced_weights(3, label).values, (std::vector<double>{0.5, 1, 0.5}))
      << "of those in use";
  EXPECT_EQ(
      balanced_weights(2, label).note,
      "sampler balanced: each of 2 classes is drawn as often as any other (they have 1 sample "
      "each)");
}

TEST(DrawByWeights, SetsOrderDigestAndNote) {
  DataParts none, one, same, other;
  draw_by_weights({}, none);
  EXPECT_EQ(none.digest, 0U);
  EXPECT_EQ(none.order(5, 0), torch_randperm(5, 0));
  EXPECT_FALSE(none.with_replacement);
  EXPECT_TRUE(none.notes.empty());
  draw_by_weights({{1, 2}, "a note"}, one);
  draw_by_weights({{1, 2}, "a note"}, same);
  draw_by_weights({{1, 3}, "a note"}, other);
  EXPECT_EQ(one.order(2, 4), weighted_order({1, 2})(2, 4));
  EXPECT_TRUE(one.with_replacement);
  EXPECT_EQ(one.notes, (std::vector<std::string>{"a note"}));
  EXPECT_EQ(one.digest, same.digest);
  EXPECT_NE(one.digest, other.digest);
  EXPECT_NE(one.digest, 0U);
  DataParts named;
  named.digest = 7;
  draw_by_weights({{1, 2}, "a note"}, named);
  EXPECT_NE(named.digest, one.digest);
}

/// Names of 90 pictures of a class, and of 10 of another: 0 to 89, and 90 to 99.
class TwoClasses : public ::testing::Test {
 protected:
  TwoClasses() {
    write("dark", 90);
    write("light", 10);
  }
  DataParts data(const std::string& sampler, const VirtualRankRange& ranks = {0, 1, 1}) const {
    const auto config =
        read_text(kPictures, {"train.dataset.dataset_root=" + folder_.path().string(),
                              "train.dataset.held_out=0", "train.loader.sampler=" + sampler,
                              "model.head.num_classes=2"});
    return make_data(config, ranks, true, 1, at::kCPU);
  }
  static std::vector<int64_t> epoch_of(DistributedSampler& sampler, int64_t epoch) {
    sampler.set_epoch(epoch);
    return sampler.indices();
  }

 private:
  void write(const std::string& name, int count) const {
    const fs::path folder = folder_ / "photos" / name;
    fs::create_directories(folder);
    for (int i = 0; i < count; ++i) {
      write_file_atomically(folder / fmt::format("{:02}.png", i), std::string_view("no picture"));
    }
  }

  const TempFolder folder_;
};

TEST_F(TwoClasses, AreDrawnAlikeIfBalanced) {
  auto balanced = data("balanced");
  int64_t light = 0;
  for (int64_t epoch = 0; epoch < 100; ++epoch) {
    const auto drawn = epoch_of(balanced.samplers.front(), epoch);
    ASSERT_EQ(drawn.size(), 100U);
    light += std::count_if(drawn.begin(), drawn.end(), [](int64_t sample) { return sample >= 90; });
  }
  EXPECT_NEAR(static_cast<double>(light), 5000, 250) << "five standard deviations";

  auto random = data("random");
  auto once = epoch_of(random.samplers.front(), 0);
  std::sort(once.begin(), once.end());
  std::vector<int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(once, all);
  EXPECT_NE(random.digest, balanced.digest) << "a resumed run warns";
  EXPECT_TRUE(random.notes.empty());
  EXPECT_EQ(balanced.notes,
            (std::vector<std::string>{
                "sampler balanced: each of 2 classes is drawn as often as any other "
                "(they have 10 to 90 samples)"}));
}

TEST_F(TwoClasses, AreTheSameDrawsOnAnyNumberOfRanks) {
  auto one = data("balanced");
  for (const int64_t epoch : {0, 3}) {
    const auto list = epoch_of(one.samplers.front(), epoch);
    for (const int ranks : {2, 3}) {
      std::vector<int64_t> dealt(list.size());
      for (int rank = 0; rank < ranks; ++rank) {
        auto of_rank = data("balanced", {rank, 1, ranks});
        EXPECT_EQ(of_rank.digest, one.digest);
        const auto own = epoch_of(of_rank.samplers.front(), epoch);
        for (size_t i = 0; i < own.size(); ++i) {
          const size_t place = i * static_cast<size_t>(ranks) + static_cast<size_t>(rank);
          if (place < dealt.size()) dealt[place] = own[i];
        }
      }
      EXPECT_EQ(dealt, list) << ranks << " ranks";
    }
  }
}

/// Samples that were made, and how often; and for each epoch the sample of each key.
struct Made {
  std::mutex mutex;
  std::map<int64_t, int64_t> times;
  std::map<int64_t, std::map<int64_t, int64_t>> by_key;
};

/// y = 3 x - 1 at 32 points, of which the last 8 have a weight.
class WeighedLine : public BatchMaker {
 public:
  WeighedLine(std::vector<double> weights, Made* made)
      : weights_(std::move(weights)), made_(made) {}
  int64_t size() const override { return 32; }
  Batch make(const BatchRows& rows) const override {
    if (made_ != nullptr) {
      const std::lock_guard lock(made_->mutex);
      for (size_t i = 0; i < rows.samples.size(); ++i) {
        ++made_->times[rows.samples[i]];
        made_->by_key[rows.epoch][rows.random_keys()[i]] = rows.samples[i];
      }
    }
    const auto x = indices_of(rows).to(at::kFloat).unsqueeze(1) / 32;
    return {x, {x * 3 - 1}, rows.num_counted};
  }
  std::vector<double> weights() const override { return weights_; }

 private:
  std::vector<double> weights_;
  Made* made_;
};

/// Its weights cannot be read.
template <typename Exception>
class UnreadableWeights final : public WeighedLine {
 public:
  explicit UnreadableWeights(Exception exception)
      : WeighedLine({}, nullptr), exception_(std::move(exception)) {}
  std::vector<double> weights() const override { throw exception_; }

 private:
  Exception exception_;
};

struct OneLayer final : Model {
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(1, 1));
  at::Tensor forward(at::Tensor input) override { return layer(input); }
};

class CountOfRows final : public Metric {
 public:
  std::vector<std::string> metric_names() const override { return {"rows"}; }
  size_t num_sums() const override { return 1; }
  std::vector<double> sums(const Tensors&, const Batch& batch) override {
    return {static_cast<double>(batch.valid)};
  }
  EvalResult result(std::span<const double> sums) override {
    EvalResult result;
    result.samples = static_cast<int64_t>(sums[0]);
    result.metrics = {{"rows", sums[0]}};
    return result;
  }
};

class WeightedRecipe : public ::testing::Test {
 protected:
  Recipe recipe(const std::vector<double>& weights) {
    Recipe recipe;
    recipe.name = "line";
    recipe.network = [](int64_t) { return std::make_shared<OneLayer>(); };
    recipe.data = [this, weights](const DatasetUse& use) {
      return std::make_unique<const WeighedLine>(weights, use.training ? &trained_ : &evaluated_);
    };
    recipe.loss = [](const Tensors& outputs, const Tensors& targets) {
      return (outputs[0] - targets[0]).square().mean();
    };
    recipe.metric = [](int64_t) { return std::make_unique<CountOfRows>(); };
    recipe.main_indicator = "rows";
    recipe.settings = {"train.ckpt_save_dir=" + (folder_ / "out").string(),
                       "scheduler.num_epochs=3", "scheduler.warmup_epochs=0",
                       "train.loader.batch_size=8", "system.val_while_train=True"};
    return recipe;
  }
  static std::string refusal(const Recipe& given) {
    const Error error = error_of([&] { train(given, World::join()); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  static void has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  Made trained_, evaluated_;
  const TempFolder folder_;
};

TEST_F(WeightedRecipe, TrainsOnDrawsAndEvaluatesEachSampleOnce) {
  std::vector<double> weights(32, 0);
  std::fill(weights.begin() + 24, weights.end(), 2.5);
  EXPECT_EQ(train(recipe(weights), World::join()), 0);
  int64_t draws = 0;
  for (const auto& [sample, times] : trained_.times) {
    EXPECT_GE(sample, 24);
    draws += times;
  }
  EXPECT_EQ(draws, 96) << "three epochs of 32";
  EXPECT_EQ(trained_.times.size(), 8U);
  EXPECT_EQ(evaluated_.times.size(), 32U);
}

TEST_F(WeightedRecipe, EachDrawHasAKeyOfItsOwn) {
  EXPECT_EQ(train(recipe(std::vector<double>(32, 1)), World::join()), 0);
  EXPECT_EQ(trained_.by_key.size(), 3U);
  for (const auto& [epoch, samples] : trained_.by_key) {
    EXPECT_EQ(samples.size(), 32U) << "as many keys as draws";
    EXPECT_EQ(samples.begin()->first, 0);
    EXPECT_EQ(samples.rbegin()->first, 31);
  }
  for (const auto& [key, sample] : evaluated_.by_key.at(0)) EXPECT_EQ(key, sample);
}

TEST_F(WeightedRecipe, WithoutWeightsTheKeyIsTheSample) {
  EXPECT_EQ(train(recipe({}), World::join()), 0);
  EXPECT_EQ(trained_.by_key.size(), 3U);
  for (const auto& [epoch, samples] : trained_.by_key) {
    EXPECT_EQ(samples.size(), 32U);
    for (const auto& [key, sample] : samples) EXPECT_EQ(key, sample);
  }
}

TEST_F(WeightedRecipe, MistakesInWeightsAreOneLine) {
  has(refusal(recipe({1, 2})), "train.dataset: 'line' has 2 weights for 32 samples");
  has(refusal(recipe(std::vector<double>(32, -1))),
      "train.dataset: 'line': weighted_order: weight 0 is -1, not a finite number from 0 on");
  auto in_order = recipe(std::vector<double>(32, 1));
  in_order.settings.emplace_back("train.loader.shuffle=False");
  has(refusal(in_order),
      "train.dataset: 'line' has weights, which draw at random: loader.shuffle must be True");
  auto balanced = recipe({});
  balanced.settings.emplace_back("train.loader.sampler=balanced");
  has(refusal(balanced),
      "train.loader.sampler cannot be balanced: line is a data set of one's own, whose "
      "BatchMaker::weights() do that");
  EXPECT_TRUE(trained_.times.empty());
}

/// A search for a learning rate over `recipe`, whose loss counts `items` in each batch.
int search_in(const Recipe& recipe, int64_t items) {
  auto config = read_text(kPictures, recipe.settings);
  config.train.dataset.own = OwnPart<DatasetMaker>{"line", recipe.data};
  config.train.loader.batch_size = 8;
  config.model.network = OwnPart<NetworkMaker>{"layer", recipe.network};
  config.loss = OwnLoss{"line", LoggedLoss(recipe.loss, {}, [=](const Batch&) { return items; })};
  return run_find_lr(config, World::join(), 10);
}

TEST_F(WeightedRecipe, ASearchForARateTrainsOnDrawsWithKeysOfTheirOwn) {
  EXPECT_EQ(search_in(recipe(std::vector<double>(32, 1)), 8), 0);
  EXPECT_EQ(trained_.by_key.at(0).size(), 32U);
}

TEST_F(WeightedRecipe, ASearchWithoutALossIsAnError) {
  const Error error = error_of([&] { search_in(recipe({}), 0); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  has(error.what(), "no step of the search had a loss");
}

// The data have no names, so that one of the two digests is 0.
TEST_F(WeightedRecipe, ARunThatGoesOnWithOrWithoutWeightsWarns) {
  const auto log_of = [&](const std::vector<double>& before, const std::vector<double>& after) {
    auto begun = recipe(before);
    begun.settings.emplace_back("train.max_steps=2");
    EXPECT_EQ(train(begun, World::join()), 0);
    auto rest = recipe(after);
    rest.settings.emplace_back("train.max_steps=3");
    rest.settings.emplace_back("model.resume=True");
    EXPECT_EQ(train(rest, World::join()), 0);
    return read_file(folder_ / "out/log_0.txt");
  };
  const std::string changed =
      "the training samples have other names, labels, weights or another order than in the run "
      "that goes on: of epoch 1, some may be used twice";
  const std::vector<double> weights(32, 0.5);
  for (const auto& [before, after] :
       {std::pair(std::vector<double>(), weights), std::pair(weights, std::vector<double>())}) {
    has(log_of(before, after), changed);
  }
  for (const auto& same : {std::vector<double>(), weights}) {
    const std::string log = log_of(same, same);
    const bool drawn = log.find("samples are drawn by the weights of 'line'") != std::string::npos;
    EXPECT_EQ(drawn, !same.empty()) << log;
    EXPECT_EQ(log.find("some may be used twice"), std::string::npos) << log;
  }
}

TEST_F(WeightedRecipe, ExceptionsOfWeightsNameTheDataSet) {
  const auto failure_of = [&](const auto& exception) {
    auto given = recipe({});
    given.data = [=](const DatasetUse&) {
      return std::make_unique<const UnreadableWeights<std::decay_t<decltype(exception)>>>(
          exception);
    };
    return error_of([&] { train(given, World::join()); });
  };
  const Error lost = failure_of(std::runtime_error("w.csv: lost\nin line 7"));
  EXPECT_EQ(lost.code(), ErrorCode::kInternal);
  has(lost.what(), "train.dataset: 'line' failed in weights(): w.csv: lost");
  EXPECT_EQ(std::string(lost.what()).find("line 7"), std::string::npos) << lost.what();
  const Error absent = failure_of(Error(ErrorCode::kNotFound, "there is no w.csv"));
  EXPECT_EQ(absent.code(), ErrorCode::kNotFound);
  has(absent.what(), "train.dataset: 'line' failed in weights(): there is no w.csv");
  has(failure_of(7).what(), "'line' failed in weights(): its exception is no std::exception");
}

}  // namespace
}  // namespace lockstep
