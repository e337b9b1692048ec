// A rank whose disk delivers its data late.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "lockstep/base/reading_note.h"
#include "lockstep/error.h"
#include "lockstep/train/evaluate.h"
#include "lockstep/train/task/classification.h"
#include "tests/support/error_of.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

/// The picture of one sample is late by `stall`, the first time.
class StalledData final : public ImageDataset {
 public:
  explicit StalledData(std::chrono::seconds stall, int read = 13) : stall_(stall), read_(read) {}
  int64_t size() const override { return data_.size(); }
  ImageShape shape() const override { return data_.shape(); }
  int64_t label(int64_t index) const override { return data_.label(index); }
  int64_t num_classes() const override { return data_.num_classes(); }
  std::span<const uint8_t> image(int64_t index) const override {
    const ReadingNote note("pictures/late.png");
    if (reads_++ == read_) std::this_thread::sleep_for(stall_);
    return data_.image(index);
  }

 private:
  TinyData data_;
  std::chrono::seconds stall_;
  int read_;  // of training, 8 an epoch in 2 batches: not in the first batch
  mutable std::atomic<int> reads_ = 0;
};

TinyHooks with_a_stall_on_rank_1(std::chrono::seconds stall, int read = 13) {
  TinyHooks hooks;
  hooks.data = [=](int rank) -> std::shared_ptr<const ImageDataset> {
    if (rank == 1) return std::make_shared<const StalledData>(stall, read);
    return std::make_shared<const TinyData>();
  };
  return hooks;
}

TEST(Trainer, WaitsForADiskLongerThanForAStep) {
  auto hooks = with_a_stall_on_rank_1(std::chrono::seconds(5));
  hooks.timeout = std::chrono::seconds(2);
  const auto stalled = run_tiny(3, tiny_config(), hooks);
  EXPECT_EQ(stalled[0].state.epoch, 4);
  EXPECT_TRUE(same_weights(stalled[0], run_tiny(3, tiny_config())[0]));
}

TEST(Trainer, SaysForWhichRanksFileItWaits) {
  auto hooks = with_a_stall_on_rank_1(std::chrono::seconds(6));
  auto config = tiny_config();
  config.train.disk_timeout_s = 1;
  const auto error = error_of([&] { run_tiny(3, config, hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_STREQ(error.what(),
               "a batch of the training data is read: rank 1 is not done after 1 s "
               "(train.disk_timeout_s); rank 1 is reading pictures/late.png");
}

// The wait for another rank's disk counts as a wait for that rank.
TEST(Trainer, WaitingForADiskIsWaitingForItsRank) {
  struct Waits final : Callback {
    void on_step(Trainer& trainer, const StepReport& report) override {
      if (trainer.rank() == 0) sums.add(report.waits, report.step_s);
    }
    WaitSums sums;
  };
  const auto waits = std::make_shared<Waits>();
  auto hooks = with_a_stall_on_rank_1(std::chrono::seconds(3));
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(waits); };
  run_tiny(3, tiny_config(), hooks);
  EXPECT_NE(waits->sums.text().find("rank 1"), std::string::npos) << waits->sums.text();
}

/// Ranks evaluate 24 pictures in batches of 4; the last one of rank 1 is late by `stall`.
void evaluate_with_a_stall(std::chrono::seconds stall, std::chrono::seconds disk_limit) {
  testing::run_rank_threads(2, [&](const World& world) {
    auto group = ProcessGroup::create(world, {.timeout = std::chrono::seconds(2)});
    TinyModel model(false);
    const auto data = with_a_stall_on_rank_1(stall, 11).data(world.rank);
    const DistributedSampler sampler(data->size(), world, {.shuffle = false});
    Loader loader(image_batches(data, ImageTransform({Normalize{}}, data->shape(), 0)),
                  {.batch_size = 4});
    ClassificationTask task(cross_entropy({}), kTinyClasses);
    EvalHooks hooks;
    hooks.disk_limit = disk_limit;
    const auto result = evaluate(model, loader, {&sampler, 1}, group, task, AmpLevel::kO0, hooks);
    EXPECT_EQ(result->samples, 24);
  });
}

TEST(Evaluate, WaitsForADiskLongerThanForAStep) {
  evaluate_with_a_stall(std::chrono::seconds(5), std::chrono::seconds(100));
}

TEST(Evaluate, SaysForWhichRanksFileItWaits) {
  const auto error =
      error_of([] { evaluate_with_a_stall(std::chrono::seconds(6), std::chrono::seconds(1)); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_STREQ(error.what(),
               "a batch of the evaluation's data is read: rank 1 is not done after 1 s "
               "(train.disk_timeout_s); rank 1 is reading pictures/late.png");
}

}  // namespace
}  // namespace lockstep
