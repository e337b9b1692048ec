// An abandoned generation of a job, after the start of another one, changes no results.

#include <gtest/gtest.h>

#include <algorithm>

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/base/literals.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/train/callbacks/results.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/event_reader.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

Config saved_in(const fs::path& dir) {
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir;
  config.system.ckpt_save_policy = "";
  config.system.val_while_train = true;
  return config;
}

/// After `step` another generation takes over the folder.
class TakenOver final : public Callback {
 public:
  explicit TakenOver(fs::path dir) : dir_(std::move(dir)) {}
  void on_step(Trainer& trainer, const StepReport&) override {
    if (trainer.state().step != 8) return;
    const auto deadline = Deadline::after(60s);
    while (!fs::is_symlink(dir_ / "latest") && !deadline.passed()) std::this_thread::yield();
    WriterFence(dir_, "job", 2);
  }

 private:
  fs::path dir_;
};

TEST(Checkpoints, AGenerationThatWasGivenUpWritesNoMore) {
  const TempFolder dir;
  const WriterFence fence(dir.path(), "job", 1);
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(log, fence));
    trainer.add(std::make_shared<TakenOver>(dir.path()));
  };
  auto config = saved_in(dir.path());
  config.system.val_while_train = false;
  const auto error = error_of([&] { run_tiny(1, config, hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
  const auto written = list_checkpoints(dir.path());
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].name, "step_000006");
  EXPECT_EQ(fs::read_symlink(dir / "latest"), "step_000006");
}

/// After the first epoch another generation takes over the folder; then this one evaluates.
class TakenOverThenEvaluated final : public Callback {
 public:
  explicit TakenOverThenEvaluated(fs::path dir) : dir_(std::move(dir)) {}
  void on_epoch(Trainer& trainer, const EpochReport&) override {
    WriterFence(dir_, "job", 2);
    write_file_atomically(dir_ / "result.log", kNewer);
    EvalResult result;
    result.metrics = {{"acc", 0.5}};
    trainer.evaluated(result);
  }
  static constexpr std::string_view kNewer =
      "Epoch\tloss\tacc\ttrain_time\teval_time\n1\t2\tNA\t3\tNA\n";

 private:
  fs::path dir_;
};

TEST(Results, AGenerationThatWasGivenUpReplacesNoRows) {
  const TempFolder dir;
  const WriterFence fence(dir.path(), "job", 1);
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Results>(std::nullopt, fence));
    trainer.add(std::make_shared<TakenOverThenEvaluated>(dir.path()));
  };
  const auto error = error_of([&] { run_tiny(1, saved_in(dir.path()), hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
  EXPECT_EQ(read_file(dir / "result.log"), TakenOverThenEvaluated::kNewer);
}

constexpr int64_t kTakenOver = 12;

/// The last step in the event files of `dir`, or 0.
int64_t last_event(const fs::path& dir) {
  int64_t last = 0;
  for (const auto& entry : fs::directory_iterator(dir / "tensorboard")) {
    for (const auto& event : testing::EventReader::read(read_file(entry.path()))) {
      last = std::max(last, event.step);
    }
  }
  return last;
}

/// After that step another generation takes over the folder; this one does not notice at once. By
/// then the thread that writes events has written some.
class TakenOverUnnoticed final : public Callback {
 public:
  explicit TakenOverUnnoticed(fs::path dir) : dir_(std::move(dir)) {}
  void on_step(Trainer& trainer, const StepReport&) override {
    if (trainer.state().step != kTakenOver) return;
    const auto deadline = Deadline::after(30s);
    while (last_event(dir_) == 0 && !deadline.passed()) std::this_thread::sleep_for(1ms);
    WriterFence(dir_, "job", 2);
  }

 private:
  fs::path dir_;
};

TEST(Results, AGenerationThatWasGivenUpGivesTensorBoardNothing) {
  const TempFolder dir;
  const WriterFence fence(dir.path(), "job", 1);
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Results>(std::nullopt, fence));
    trainer.add(std::make_shared<TakenOverUnnoticed>(dir.path()));
  };
  auto config = saved_in(dir.path());
  config.system.val_while_train = false;
  config.system.tensorboard = true;
  try {
    run_tiny(1, config, hooks);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch) << error.what();
  }
  const auto entries = fs::directory_iterator(dir / "tensorboard");
  const int64_t last = last_event(dir.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
  EXPECT_GE(last, 1) << "nothing was written before, either";
  EXPECT_LE(last, kTakenOver) << "written by a generation that was given up";
}

}  // namespace
}  // namespace lockstep
