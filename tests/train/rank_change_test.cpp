#include "lockstep/train/rank_change.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "tests/support/error_of.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

Config config_of_batches(int64_t batch_size) {
  Config config;
  config.train.loader.batch_size = batch_size;
  config.scheduler.lr = 0.1;
  return config;
}

TEST(RateScale, FollowsTheGlobalBatch) {
  ParallelConfig config;
  EXPECT_EQ(rate_factor(config, 64), 1);
  config.scale_rate = RateScale::kLinear;
  config.reference_batch = 256;
  EXPECT_EQ(rate_factor(config, 64), 0.25);
  EXPECT_EQ(rate_factor(config, 512), 2);
  config.scale_rate = RateScale::kSqrt;
  EXPECT_EQ(rate_factor(config, 64), 0.5);
}

TEST(RateScale, IsToldInTheLog) {
  auto config = config_of_batches(16);
  EXPECT_EQ(rate_line(config, 2), "");
  config.parallel.scale_rate = RateScale::kLinear;
  config.parallel.reference_batch = 256;
  config.train.gradient_accumulation_steps = 2;
  EXPECT_EQ(rate_line(config, 2),
            "Learning rate: scheduler.lr 0.1 x 0.25 = 0.025 (parallel.scale_rate linear: a batch "
            "of 64, reference_batch 256)");
}

// Groups with rates of their own are scaled, too.
TEST(RateScale, ReachesEveryStepAndGroup) {
  auto config = tiny_config();
  config.scheduler.min_lr = 0;
  config.parallel.scale_rate = RateScale::kLinear;
  config.parallel.reference_batch = 16;
  const auto plain = run_tiny(1, tiny_config())[0].lrs;
  const auto scaled = run_tiny(1, config)[0].lrs;
  ASSERT_EQ(scaled.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 4);
  config.parallel.virtual_ranks = 4;  // the batch is that of the virtual ranks
  EXPECT_DOUBLE_EQ(run_tiny(2, config)[0].lrs.front(), plain.front());
  config.parallel.virtual_ranks = 0;
  GroupConfig group;
  group.params = {"last"};
  group.lr_scale = 10;
  config.optimizer.groups = {group};
  TinyHooks hooks;
  std::vector<double> rates;
  class Rates final : public Callback {
   public:
    explicit Rates(std::vector<double>& into) : rates_(into) {}
    void on_step(Trainer& trainer, const StepReport&) override {
      for (auto& one : trainer.optimizer().param_groups()) rates_.push_back(one.options().get_lr());
    }

   private:
    std::vector<double>& rates_;
  };
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Rates>(rates)); };
  run_tiny(1, config, hooks);
  EXPECT_DOUBLE_EQ(rates[0], plain[0] / 4 * 10);
  EXPECT_DOUBLE_EQ(rates[1], plain[0] / 4);
}

TEST(RankChange, WithoutAFileItNamesFactors) {
  EXPECT_EQ(describe_rank_change({8, 2}, nullptr),
            "A run on 8 ranks goes on with 2 in one of three ways, each with model.resume=True:\n"
            "Same run, by virtual ranks: -o parallel.virtual_ranks=8\n"
            "  Each rank does the work of 4: a step takes some 4 times as long.\n"
            "  Global batch, steps and learning rate stay as they are.\n"
            "  So do the bits, if that run had parallel.threads=1.\n"
            "Same batch, by accumulation: -o parallel.global_batch=N, the batch of all ranks of "
            "that run\n"
            "  Each rank takes 4 times as many samples: a step takes some 4 times as long.\n"
            "  Steps and learning rate stay as they are. The bits do not.\n"
            "Smaller run, by rule: scheduler.lr times 0.25 (linear) or 0.5 (square root)\n"
            "  Global batch times 0.25: 4 times as many steps an epoch, each as long as before.\n");
}

TEST(RankChange, WithAFileItNamesItsNumbers) {
  const auto config = config_of_batches(32);
  EXPECT_EQ(describe_rank_change({8, 3}, &config),
            "A run on 8 ranks goes on with 3 in one of three ways, each with model.resume=True:\n"
            "Same run, by virtual ranks: -o parallel.virtual_ranks=8\n"
            "  Each rank does the work of 2 or 3: a step takes some 3 times as long.\n"
            "  Global batch 256, steps and learning rate stay as they are.\n"
            "  So do the bits, if that run had parallel.threads=1.\n"
            "Same batch, by accumulation: -o parallel.global_batch=255 (or 261: 3 ranks cannot "
            "share 256 equally)\n"
            "  Each rank takes 2.67 times as many samples: a step takes some 2.67 times as long.\n"
            "  Steps and learning rate stay as they are. The bits do not.\n"
            "Smaller run, by rule: -o scheduler.lr=0.0375 (linear; 0.0612372 by square root)\n"
            "  Global batch 96: 2.667 times as many steps an epoch, each as long as before.\n"
            "  For any number of ranks: -o parallel.scale_rate=linear "
            "parallel.reference_batch=256\n");
}

TEST(RankChange, KnowsAGlobalBatch) {
  auto config = config_of_batches(32);
  config.train.gradient_accumulation_steps = 2;
  const auto tells = [&](const std::string& part) {
    const auto text = describe_rank_change({8, 2}, &config);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  tells("-o parallel.global_batch=512 train.gradient_accumulation_steps=1\n");
  config.train.gradient_accumulation_steps = 1;
  tells("-o parallel.global_batch=256\n");
  config.parallel.global_batch = 256;
  tells("Same batch, by accumulation: the configuration as it is\n");
  tells(
      "-o scheduler.lr=0.025 (linear; 0.05 by square root) parallel.global_batch=0\n"
      "  Global batch 64: 4 times as many steps");
  tells("as many steps an epoch, each as long as before.\n");
  config.parallel.scale_rate = RateScale::kLinear;
  config.parallel.reference_batch = 256;
  tells("-o parallel.global_batch=0; its scale_rate makes the learning rate 0.025\n");
  config.parallel.virtual_ranks = 8;
  tells("-o parallel.global_batch=256 parallel.virtual_ranks=0\n");
  tells("-o parallel.virtual_ranks=0 parallel.global_batch=0; its");
}

// Eight ranks had 32 samples each, and six have 64.
TEST(RankChange, OfFewerRanksMayHaveALargerBatch) {
  auto config = config_of_batches(64);
  config.parallel.global_batch = 256;
  const auto text = describe_rank_change({8, 6}, &config);
  EXPECT_NE(text.find("-o parallel.global_batch=258 (or 252: 6 ranks cannot share 256 equally)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Larger run, by rule: "), std::string::npos) << text;
  EXPECT_NE(text.find("  Global batch 384: 0.6667 times as many steps an epoch.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(describe_rank_change({8, 4}, &config).find("Another run, by rule: "),
            std::string::npos);
}

TEST(RankChange, KnowsVirtualRanksAndScaledRates) {
  auto config = config_of_batches(32);
  config.parallel.virtual_ranks = 8;
  const auto text = describe_rank_change({4, 2}, &config);
  EXPECT_NE(text.find("by virtual ranks: the configuration as it is\n"
                      "  Each rank does the work of 4: a step takes some 2 times as long.\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("scheduler.lr=0.025 (linear; 0.05 by square root) parallel.virtual_ranks=0"),
            std::string::npos)
      << text;
  EXPECT_NE(std::string(error_of([&] {
                          describe_rank_change({16, 2}, &config);
                        }).what())
                .find("parallel.virtual_ranks is 8"),
            std::string::npos);
  config.parallel.virtual_ranks = 0;
  config.parallel.scale_rate = RateScale::kSqrt;
  config.parallel.reference_batch = 256;
  EXPECT_NE(describe_rank_change({8, 2}, &config)
                .find("the configuration as it is; its scale_rate makes the learning rate 0.05\n"),
            std::string::npos);
  config.parallel.virtual_ranks = 8;
  EXPECT_NE(describe_rank_change({8, 2}, &config)
                .find("-o parallel.virtual_ranks=0; its scale_rate makes the learning rate 0.05\n"),
            std::string::npos);
  EXPECT_NE(describe_rank_change({2, 8}, nullptr).find("not with more than 2 ranks"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
