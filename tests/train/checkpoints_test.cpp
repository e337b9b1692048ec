// When and how a run's checkpoints are written.

#include "lockstep/train/callbacks/checkpoints.h"
#include "lockstep/base/literals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "lockstep/base/file.h"
#include "lockstep/checkpoint/keep_policy.h"
#include "lockstep/comm/flight/ring.h"
#include "lockstep/error.h"
#include "lockstep/training_checkpoint.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// Gives each epoch an accuracy, behind Checkpoints.
class Graded final : public Callback {
 public:
  explicit Graded(std::vector<double> grades) : grades_(std::move(grades)) {}
  void on_epoch(Trainer& trainer, const EpochReport& report) override {
    EvalResult result;
    result.metrics = {{"acc", grades_.at(static_cast<size_t>(report.epoch - 1))}};
    trainer.evaluated(result);
  }

 private:
  std::vector<double> grades_;
};

Config saved_config(const fs::path& dir) {
  auto config = tiny_config();
  config.train.ckpt_save_dir = dir;
  config.system.ckpt_save_policy = "";
  config.system.val_while_train = true;
  return config;
}

/// A run of 4 epochs of 6 steps.
TinyRun run_graded(const Config& config, std::vector<double> grades,
                   const fs::path& log_file = {}) {
  TrainingLog log({.file = log_file, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(log));
    trainer.add(std::make_shared<Graded>(grades));
  };
  return run_tiny(1, config, hooks)[0];
}

std::vector<std::string> folders_in(const fs::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : list_checkpoints(dir)) names.push_back(entry.name);
  return names;
}

TEST(Checkpoints, TheFigureComesIntoTheCheckpointOfItsEpoch) {
  const TempFolder dir;
  run_graded(saved_config(dir.path()), {0.1, 0.4, 0.3, 0.2});
  const auto entries = list_checkpoints(dir.path(), "acc");
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].metric, 0.1);
  EXPECT_EQ(entries[1].metric, 0.4);
  EXPECT_EQ(entries[3].metric, 0.2);
  EXPECT_EQ(fs::read_symlink(dir / "best"), "step_000012");
  EXPECT_EQ(fs::read_symlink(dir / "latest"), "step_000024");
}

// Of epochs with the same figure the first is the best, and the newer ones are kept beside it.
TEST(Checkpoints, OfEqualsTheFirstIsTheBestEverywhere) {
  for (const std::string format : {"none", "safetensors"}) {
    const TempFolder dir;
    auto config = saved_config(dir.path());
    config.train.weights_format = format;
    config.system.ckpt_save_policy = "top_k";
    config.system.ckpt_max_keep = 1;
    const auto state = run_graded(config, {0.1, 0.4, 0.4, 0.4}).state;
    EXPECT_EQ(state.best, (MetricPoint{2, 12, 0.4})) << format;
    EXPECT_EQ(fs::read_symlink(dir / "best"), "step_000012") << format;
    EXPECT_EQ(folders_in(dir.path()), (std::vector<std::string>{"step_000012", "step_000024"}));
    if (format == "none") continue;
    const auto best = load_tensors(dir / "best.safetensors").tensors;
    const auto folder = load_tensors(dir / "best/model.safetensors").tensors;
    EXPECT_TRUE(best.at("first.weight").equal(folder.at("first.weight")));
    EXPECT_TRUE(fs::exists(dir / "e4.safetensors"));
  }
}

TEST(Checkpoints, TheTableOfTheBestHasTheNewerOfEqualsFirst) {
  for (const std::string format : {"none", "safetensors"}) {
    const TempFolder dir;
    auto config = saved_config(dir.path());
    config.train.weights_format = format;
    config.system.ckpt_save_policy = "top_k";
    config.system.ckpt_max_keep = 3;
    run_graded(config, {0.4, 0.4, 0.1, 0.4}, dir / "log.txt");
    std::string table = "Top K checkpoints:\nacc\tcheckpoint";
    for (const int epoch : {4, 2, 1}) {
      const auto name = format == "none" ? step_folder_name(epoch * 6)
                                         : "e" + std::to_string(epoch) + ".safetensors";
      table += "\n0.4000\t" + (dir / name).string();
    }
    const auto log = read_file(dir / "log.txt");
    EXPECT_NE(log.find(table), std::string::npos) << log;
  }
}

// Only rank 0 looks at the disk.
TEST(Checkpoints, RanksAgreeOnTheBestOfThoseThatAreKept) {
  const TempFolder dir;
  auto config = saved_config(dir.path());
  config.train.loader.batch_size = 2;
  config.train.max_steps = 18;
  const std::vector<double> grades = {0.1, 0.4, 0.3, 0.2};
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(log));
    trainer.add(std::make_shared<Graded>(grades));
  };
  run_tiny(2, config, hooks);
  fs::remove_all(dir / "step_000012");  // as if less had been better
  config.train.max_steps = 0;
  hooks.start = [&](torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
    auto state = load_checkpoint(dir.path(), model, optimizer, config.model.name());
    state.higher_is_better = false;
    return state;
  };
  for (const auto& run : run_tiny(2, config, hooks)) {
    EXPECT_EQ(run.state.best, (MetricPoint{3, 18, 0.3}));
  }
  EXPECT_EQ(fs::read_symlink(dir / "best"), "step_000018");
}

int count_of(const std::string& part, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Checkpoints, TheBestIsSaidOnceAtTheEnd) {
  const TempFolder dir;
  run_graded(saved_config(dir.path()), {0.1, 0.3, 0.2, 0.4}, dir / "log.txt");
  const auto log = read_file(dir / "log.txt");
  EXPECT_EQ(count_of("=> Best acc: 0.4 \nTraining completed!", log), 1) << log;
  EXPECT_EQ(count_of("=> Best acc: 0.4", log), 1) << log;
  EXPECT_EQ(count_of("=> Best acc: 0.3, checkpoint saved.", log), 1) << log;
}

TEST(Checkpoints, EveryNEpochsAndTheBestAndTheLast) {
  const TempFolder dir;
  auto config = saved_config(dir.path());
  config.train.ckpt_save_epochs = 3;
  run_graded(config, {0.1, 0.4, 0.3, 0.2});  // 1 and 2 are the best at their time
  EXPECT_EQ(folders_in(dir.path()),
            (std::vector<std::string>{"step_000006", "step_000012", "step_000018", "step_000024"}));
  const TempFolder other;
  config = saved_config(other.path());
  config.train.ckpt_save_epochs = 3;
  run_graded(config, {0.5, 0.4, 0.3, 0.2});
  EXPECT_EQ(folders_in(other.path()),
            (std::vector<std::string>{"step_000006", "step_000018", "step_000024"}));
}

TEST(Checkpoints, ATrainingLossThatFallsIsNoReasonToSave) {
  const TempFolder dir;
  auto config = saved_config(dir.path());
  config.system.val_while_train = false;
  config.train.ckpt_save_epochs = 3;
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) { trainer.add(std::make_shared<Checkpoints>(log)); };
  const auto state = run_tiny(1, config, hooks)[0].state;
  EXPECT_EQ(folders_in(dir.path()), (std::vector<std::string>{"step_000018", "step_000024"}));
  ASSERT_EQ(state.history.size(), 2U) << "of the epochs that are there";
  EXPECT_EQ(state.best->step, 24) << "the loss falls";
  EXPECT_EQ(fs::read_symlink(dir / "best"), "step_000024");
}

TEST(Checkpoints, EqualFilesOfWeightsAreOneFile) {
  for (const std::string format : {"safetensors", "ckpt"}) {
    const TempFolder dir;
    auto config = saved_config(dir.path());
    config.train.weights_format = format;
    const auto run = run_graded(config, {0.1, 0.4, 0.3, 0.2});
    for (const char* name : {"e1.", "e2.", "e4.", "best."}) {
      EXPECT_TRUE(fs::exists(dir / (name + format))) << name << format;
    }
    EXPECT_TRUE(fs::equivalent(dir / ("best." + format), dir / ("e2." + format))) << format;
    if (format == "ckpt") continue;
    EXPECT_TRUE(fs::equivalent(dir / "e4.safetensors", dir / "latest/model.safetensors"));
    const auto last = load_tensors(dir / "e4.safetensors").tensors;
    EXPECT_TRUE(last.at("first.weight").equal(run.weights[0]));
  }
}

// The written content is the state at the time of the save, even while training continues.
TEST(Checkpoints, ContentIsACopy) {
  const TempFolder dir;
  TinyModel model(true);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  model.forward(torch::rand({4, 3, 4, 4})).sum().backward();
  optimizer.step();
  TrainingState state;
  state.model = "tiny";
  const auto content = copy_content(model, optimizer, state);
  const at::Tensor before = model.first->weight.detach().clone();
  optimizer.step();
  EXPECT_FALSE(model.first->weight.equal(before));
  write_checkpoint(dir.path(), content, {});
  load_checkpoint(dir.path(), model, optimizer, "tiny");
  EXPECT_TRUE(model.first->weight.equal(before));
}

/// Releases the writer once `step` is done.
class Release final : public Callback {
 public:
  Release(int64_t step, std::promise<void>& done) : step_(step), done_(done) {}
  void on_step(Trainer& trainer, const StepReport&) override {
    if (trainer.state().step == step_) done_.set_value();
  }

 private:
  int64_t step_;
  std::promise<void>& done_;
};

TEST(Checkpoints, TrainingGoesOnWhileOneIsWritten) {
  const TempFolder dir;
  auto config = saved_config(dir.path());
  config.system.val_while_train = false;
  config.scheduler.num_epochs = 2;
  TrainingLog log({.file = {}, .console = false});
  std::promise<void> done;
  const auto later_steps = done.get_future().share();
  std::atomic<bool> in_time = true;
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    // The checkpoint of step 6 is written once step 11 is done: the next is due after step 12.
    trainer.add(std::make_shared<Checkpoints>(log, WriterFence(), [&] {
      if (later_steps.wait_for(60s) != std::future_status::ready) in_time = false;
    }));
    trainer.add(std::make_shared<Release>(11, done));
  };
  run_tiny(1, config, hooks);
  EXPECT_TRUE(in_time);
  EXPECT_EQ(folders_in(dir.path()), (std::vector<std::string>{"step_000006", "step_000012"}));
}

/// Waits at `step` until writing has begun.
class Begun final : public Callback {
 public:
  Begun(int64_t step, const std::atomic<int>& written) : step_(step), written_(written) {}
  void on_step(Trainer& trainer, const StepReport&) override {
    const auto deadline = Deadline::after(60s);
    while (trainer.state().step == step_ && written_ == 0 && !deadline.passed()) {
      std::this_thread::yield();
    }
  }

 private:
  int64_t step_;
  const std::atomic<int>& written_;
};

/// Releases the writer once the last checkpoint waits in line.
class ReleaseAfterEpoch final : public Callback {
 public:
  ReleaseAfterEpoch(int64_t epoch, std::promise<void>& done) : epoch_(epoch), done_(done) {}
  void on_epoch(Trainer& /*trainer*/, const EpochReport& report) override {
    if (report.epoch == epoch_) done_.set_value();
  }

 private:
  int64_t epoch_;
  std::promise<void>& done_;
};

/// Runs 4 epochs of 6 steps; the write of the first checkpoint lasts until the last one is saved.
void run_on_a_slow_disk(const Config& config, const fs::path& log_file,
                        const std::vector<double>& grades, int64_t room_bytes = 0) {
  TrainingLog log({.file = log_file, .console = false});
  std::promise<void> done;
  const auto later_steps = done.get_future().share();
  std::atomic<int> written = 0;
  std::atomic<bool> in_time = true;
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<Checkpoints>(
        log, WriterFence(),
        [&] {
          if (written++ > 0) return;
          if (later_steps.wait_for(60s) != std::future_status::ready) in_time = false;
        },
        room_bytes));
    if (config.system.val_while_train) trainer.add(std::make_shared<Graded>(grades));
    trainer.add(std::make_shared<Begun>(config.train.ckpt_save_steps > 0 ? 3 : 7, written));
    trainer.add(std::make_shared<ReleaseAfterEpoch>(4, done));
  };
  run_tiny(1, config, hooks);
  EXPECT_TRUE(in_time) << "training has waited for the disk";
}

TEST(Checkpoints, OnASlowDiskTheNewestTakesTheOthersPlaces) {
  const TempFolder dir;
  auto config = saved_config(dir.path());
  config.train.ckpt_save_steps = 2;
  run_on_a_slow_disk(config, dir / "log.txt", {0.4, 0.3, 0.2, 0.1});
  EXPECT_EQ(folders_in(dir.path()),
            (std::vector<std::string>{"step_000002", "step_000006", "step_000024"}));
  EXPECT_EQ(fs::read_symlink(dir / "latest"), "step_000024");
  EXPECT_EQ(fs::read_symlink(dir / "best"), "step_000006");
  EXPECT_EQ(list_checkpoints(dir.path(), "acc")[2].metric, 0.1);
  const auto log = read_file(dir / "log.txt");
  const std::string warning =
      "the disk is slower than training: the checkpoint of step 4 is replaced by that of step "
      "6";
  EXPECT_NE(log.find(warning), std::string::npos) << log;
  EXPECT_EQ(log.find("slower"), log.rfind("slower")) << log;
}

// Small checkpoints all wait in memory, so training never waits.
TEST(Checkpoints, OnASlowDiskAllAreWrittenThatMemoryHolds) {
  const TempFolder dir;
  auto config = saved_config(dir.path());
  config.train.ckpt_save_steps = 2;
  run_on_a_slow_disk(config, dir / "log.txt", {0.4, 0.3, 0.2, 0.1}, Checkpoints::kRoomBytes);
  EXPECT_EQ(folders_in(dir.path()).size(), 12U);
  EXPECT_EQ(read_file(dir / "log.txt").find("slower"), std::string::npos);
}

/// The number of calls of its rank's groups before Checkpoints, and the same after it.
class CallsBefore final : public Callback {
 public:
  void on_step(Trainer& trainer, const StepReport&) override { calls = so_far(trainer); }
  static uint64_t so_far(Trainer& trainer) {
    return FlightRing::of_rank(trainer.rank(), 0).memory().header.events_begun.load();
  }
  uint64_t calls = 0;
};
class CallsAfter final : public Callback {
 public:
  explicit CallsAfter(std::shared_ptr<CallsBefore> before) : before_(std::move(before)) {}
  void on_step(Trainer& trainer, const StepReport&) override {
    EXPECT_EQ(CallsBefore::so_far(trainer), before_->calls);
  }

 private:
  std::shared_ptr<CallsBefore> before_;
};

TEST(Checkpoints, ToSaveRanksNeedNoWordOfEachOther) {
  const TempFolder dir;
  auto config = saved_config(dir.path());
  config.system.val_while_train = false;
  config.train.ckpt_save_steps = 1;
  TrainingLog log({.file = {}, .console = false});
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    const auto before = std::make_shared<CallsBefore>();
    trainer.add(before);
    trainer.add(std::make_shared<Checkpoints>(log));
    trainer.add(std::make_shared<CallsAfter>(before));
  };
  run_tiny(2, config, hooks);
  EXPECT_FALSE(folders_in(dir.path()).empty());
}

TEST(Checkpoints, OnASlowDiskTheBestIsWrittenAndItsFilesAreThose) {
  for (const std::string format : {"safetensors", "ckpt"}) {
    const TempFolder dir;
    auto config = saved_config(dir.path());
    config.train.weights_format = format;
    run_on_a_slow_disk(config, dir / "log.txt", {0.1, 0.4, 0.5, 0.2});
    EXPECT_EQ(fs::read_symlink(dir / "best"), "step_000018");
    EXPECT_EQ(fs::read_symlink(dir / "latest"), "step_000024");
    EXPECT_TRUE(fs::equivalent(dir / ("best." + format), dir / ("e3." + format))) << format;
    EXPECT_TRUE(fs::exists(dir / ("e4." + format)));
    EXPECT_FALSE(fs::exists(dir / ("e2." + format))) << "was the best when it began to wait";
  }
}

/// Releases the writer when the trainer ends: added before the callback that waits for it.
class ReleaseAtTheEnd final : public Callback {
 public:
  explicit ReleaseAtTheEnd(std::promise<void>& ended) : ended_(ended) {}
  ~ReleaseAtTheEnd() override { ended_.set_value(); }

 private:
  std::promise<void>& ended_;
};

/// Step 8 takes longer than the disk's limit.
class SlowStep final : public Callback {
 public:
  void on_step(Trainer& trainer, const StepReport&) override {
    if (trainer.state().step == 8) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  }
};

TEST(Checkpoints, ADiskThatTakesLongerThanItMayEndsTheRun) {
  const TempFolder dir;
  auto config = saved_config(dir.path());
  config.system.val_while_train = false;
  config.train.disk_timeout_s = 1;
  TrainingLog log({.file = {}, .console = false});
  std::promise<void> ended;
  const auto end = ended.get_future().share();
  std::atomic<int> written = 0;
  TinyHooks hooks;
  hooks.add_callbacks = [&](Trainer& trainer) {
    trainer.add(std::make_shared<ReleaseAtTheEnd>(ended));
    trainer.add(std::make_shared<Checkpoints>(log, WriterFence(), [&] {
      ++written;
      end.wait_for(60s);
    }));
    trainer.add(std::make_shared<Begun>(7, written));
    trainer.add(std::make_shared<SlowStep>());
  };
  const auto error = error_of([&] { run_tiny(1, config, hooks); });
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_NE(std::string(error.what()).find(": not done after 1 s (train.disk_timeout_s)"),
            std::string::npos)
      << error.what();
}

}  // namespace
}  // namespace lockstep
