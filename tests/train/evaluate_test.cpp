#include "lockstep/train/evaluate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/train/task/classification.h"
#include "tests/support/error_of.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

TEST(Evaluate, CountsEverySampleOnceForAnyNumberOfRanks) {
  std::vector<EvalResult> results;
  for (const int ranks : {1, 2, 3, 5}) {
    std::mutex mutex;
    testing::run_rank_threads(ranks, [&](const World& world) {
      auto group = ProcessGroup::create(world);
      TinyModel model(true);
      {
        const at::NoGradGuard no_grad;
        for (auto& parameter : model.parameters()) {
          parameter.copy_(torch::arange(parameter.numel()).reshape_as(parameter).sin());
        }
      }
      auto data = std::make_shared<const TinyData>(23);
      DistributedSampler sampler(data->size(), world, {.shuffle = false});
      Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                    {.batch_size = 4});
      ClassificationTask task(cross_entropy({}), kTinyClasses);
      const auto result = evaluate(model, loader, {&sampler, 1}, group, task);
      const std::lock_guard lock(mutex);
      results.push_back(result.value());
    });
  }
  for (const auto& result : results) {
    EXPECT_EQ(result.samples, 23);
    EXPECT_EQ(result.metrics, results[0].metrics);
    EXPECT_NEAR(result.loss.value(), results[0].loss.value(), 1e-6);
  }
  EXPECT_GT(results[0].metric("top_5"), results[0].metric("acc"));
  EXPECT_EQ(error_of([&] { (void)results[0].metric("top5"); }).what(),
            std::string("metric.main_indicator is 'top5', evaluation gives acc, top_5"));
}

/// A metric that looks at its rank; with `counts` it has as many figures.
struct OfItsRank final : Metric {
  OfItsRank(int own, bool has_as_many) : rank(own), counts(has_as_many) {}
  std::vector<std::string> metric_names() const override { return {"rank"}; }
  size_t num_sums() const override { return 1; }
  std::vector<double> sums(const Tensors&, const Batch&) override { return {0}; }
  EvalResult result(std::span<const double>) override {
    EvalResult all;
    const auto figures = static_cast<size_t>(counts ? rank : 1);
    all.metrics.assign(figures, {"rank", static_cast<double>(rank)});
    return all;
  }
  int rank;
  bool counts;
};

TEST(Evaluate, GivesAllRanksTheFiguresOfTheFirst) {
  for (const bool counts : {false, true}) {
    testing::run_rank_threads(3, [&](const World& world) {
      auto group = ProcessGroup::create(world);
      TinyModel model(true);
      auto data = std::make_shared<const TinyData>(6);
      DistributedSampler sampler(data->size(), world, {.shuffle = false});
      Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                    {.batch_size = 4});
      ClassificationParts parts;
      parts.evaluates_loss = false;
      parts.metrics.push_back(std::make_unique<OfItsRank>(world.rank, counts));
      ClassificationTask task(std::move(parts));
      const auto figure = [&] {
        return evaluate(model, loader, {&sampler, 1}, group, task).value().metric("rank");
      };
      if (!counts) {
        EXPECT_EQ(figure(), 0) << world.rank;
      } else {
        EXPECT_STREQ(error_of([&] { (void)figure(); }).what(),
                     "the ranks differ: a metric gives 0 figures on one rank, and 2 on another");
      }
    });
  }
}

TEST(Evaluate, SaysHowFarItIsAfterEachBatch) {
  testing::run_rank_threads(2, [&](const World& world) {
    auto group = ProcessGroup::create(world);
    TinyModel model(false);
    auto data = std::make_shared<const TinyData>(23);
    const DistributedSampler sampler(data->size(), world, {.shuffle = false});
    Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                  {.batch_size = 4});
    ClassificationTask task(cross_entropy({}), kTinyClasses);
    std::vector<int64_t> evaluated;
    EvalHooks hooks;
    hooks.evaluated = [&](const EvalState& state) {
      EXPECT_EQ(state.samples, sampler.num_unpadded());
      evaluated.push_back(state.evaluated);
    };
    evaluate(model, loader, {&sampler, 1}, group, task, AmpLevel::kO0, hooks);
    EXPECT_EQ(evaluated, (std::vector<int64_t>{4, 8, sampler.num_unpadded()}));
  });
}

TEST(Evaluate, WarnsOnceOfOutputsThatAreNotFinite) {
  testing::run_rank_threads(2, [&](const World& world) {
    auto group = ProcessGroup::create(world);
    TinyModel model(false);
    auto data = std::make_shared<const TinyData>(23);
    const DistributedSampler sampler(data->size(), world, {.shuffle = false});
    Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                  {.batch_size = 4});
    ClassificationTask task(cross_entropy({}), kTinyClasses);
    const auto warnings_with = [&](float bias) {
      const at::NoGradGuard no_grad;
      model.last->bias[3] = bias;
      return evaluate(model, loader, {&sampler, 1}, group, task).value().warnings;
    };
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(warnings_with(0).empty());
    EXPECT_TRUE(warnings_with(-kInfinity).empty()) << "a hidden class";
    std::vector<std::string> expected;
    if (world.rank == 0) {
      expected = {
          "evaluation: the network's outputs are not finite for 23 of 23 samples: figures that "
          "count them have no meaning"};
    }
    EXPECT_EQ(warnings_with(kInfinity), expected);
    EXPECT_EQ(warnings_with(std::numeric_limits<float>::quiet_NaN()), expected);
  });
}

TEST(Evaluate, ItsProgressIsThatOfAllRanks) {
  const auto progress = to_progress({30, 120, std::chrono::seconds(10)}, {0, 2, 8});
  EXPECT_EQ(format_progress(progress, 79),
            "evaluation  ━━━━━───────────────   25%  120/480  12 img/s  ETA 0:30");
}

}  // namespace
}  // namespace lockstep
