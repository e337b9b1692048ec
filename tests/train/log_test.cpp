#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/file.h"
#include "lockstep/train/callbacks/step_log.h"
#include "lockstep/train/log/training_log.h"
#include "lockstep/train/log_lines.h"
#include "lockstep/train/run_summary.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

StepReport step() {
  return {
      .epoch = 1, .step_in_epoch = 10, .steps_per_epoch = 156, .loss = 2.302585093, .lr = 0.004};
}

TEST(Lines, SaysHowManySamplesWereLeftOut) {
  EXPECT_EQ(faults_line(1, "used"),
            "1 sample could not be used: each has a warning in the log of its rank");
  EXPECT_EQ(faults_line(12, "evaluated"),
            "12 samples could not be evaluated: each has a warning in the log of its rank");
}

TEST(Lines, MindocrStep) {
  EXPECT_EQ(mindocr_step_line(step(), 5, 105.1234, 32),
            "epoch: [1/5] step: [10/156], loss: 2.302585, lr: 0.004000, per step time: 105.123 ms, "
            "fps per card: 304.40 img/s");
}

TEST(Lines, ShownValuesStandBehindTheRest) {
  auto report = step();
  report.logged = {{"loss_box", 7}, {"box", 0.5}, {"small", 3e-8}, {"share", std::nan("")}};
  report.shown = 3;
  EXPECT_TRUE(mindocr_step_line(report, 5, 105.1234, 32)
                  .ends_with("fps per card: 304.40 img/s, box: 0.5, small: 3e-08, share: nan"));
  EXPECT_TRUE(mindspore_step_line(report).ends_with(", box is 0.5, small is 3e-08, share is nan"));
}

TEST(Lines, MindocrEpoch) {
  EpochReport report{.epoch = 2, .steps = 10, .loss = 1.5, .seconds = 2, .data_wait_s = 0.01};
  report.waits.add({.moved_s = 0.1}, 2);
  EXPECT_EQ(mindocr_epoch_line(report, 5, 32),
            "epoch: [2/5], loss: 1.500000, epoch time: 2.000 s, per step time: 200.000 ms, fps per "
            "card: 160.00 img/s, data wait: 0.5 %, communication: 5.0 %");
  report.earlier_s = 40;  // possibly of other ranks: the rest is of this run
  EXPECT_EQ(mindocr_epoch_line(report, 5, 32),
            "epoch: [2/5], loss: 1.500000, epoch time: 42.000 s, per step time: 200.000 ms, fps "
            "per card: 160.00 img/s, data wait: 0.5 %, communication: 5.0 %");
}

TEST(Lines, WhereTheTimeOfTheStepsWent) {
  StepTimings sum;
  // The wait for rank 0's buffers appears once, as a wait.
  for (int step = 0; step < 4; ++step) {
    StepTimings one{13, 20, 5, 0.5, 1.25};
    one.buffers = 3;
    sum += one;
  }
  WaitSums waits;
  waits.add({.slowest = 1, .waited_s = 0.005, .moved_s = 0.002}, 0.12);
  EXPECT_EQ(timings_line(sum, 4, waits),
            "Averaged steps: 4, mean: forward 10.00 ms, backward 20.00 ms, communication hidden in "
            "it 5.00 ms, exposed 0.50 ms, waiting for slower ranks 1.25 ms");
}

TEST(LineTimer, FirstSoonThenAtLeastEverySoManySeconds) {
  using std::chrono::seconds;
  const LineTimer::Clock::time_point begin{};
  LineTimer timer;
  timer.start(seconds(30), begin);
  EXPECT_FALSE(timer.due(begin + seconds(4)));
  EXPECT_TRUE(timer.due(begin + seconds(5)));
  timer.written(begin + seconds(20));  // one that was due by steps counts, too
  EXPECT_FALSE(timer.due(begin + seconds(49)));
  EXPECT_TRUE(timer.due(begin + seconds(50)));
  timer.start(seconds(2), begin);
  EXPECT_TRUE(timer.due(begin + seconds(2)));
  timer.start(seconds(0), begin);
  EXPECT_FALSE(timer.due(begin + seconds(1000)));
}

TEST(Lines, Mindspore) {
  auto report = step();
  report.step_in_epoch = 1;
  report.loss = static_cast<float>(2.3025854);
  EXPECT_EQ(mindspore_step_line(report), "epoch: 1 step: 1, loss is 2.3025854");
  EXPECT_EQ(mindspore_epoch_line({.steps = 4, .seconds = 1.5}),
            "Train epoch time: 1500.000 ms, per step time: 375.000 ms");
}

TEST(Lines, PythonsNumbersAndDicts) {
  EXPECT_EQ(python_float(1), "1.0");
  EXPECT_EQ(python_float(1e-6), "1e-06");
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(std::nan("")), "nan");
  EXPECT_EQ(python_float(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(python_dict({{"acc", 0.65}, {"top_5", 1}}), "{'acc': 0.65, 'top_5': 1.0}");
}

TEST(Lines, BannerHasMindocrsLabelsInOrder) {
  Config config;
  config.train.loader.batch_size = 32;
  config.train.gradient_accumulation_steps = 2;
  const auto banner =
      training_banner(config, {.num_ranks = 2, .num_virtual_ranks = 2, .steps_per_epoch = 156});
  EXPECT_EQ(banner.find("\n========================================\nDistribute: True\nModel: "),
            0u);
  EXPECT_NE(banner.find("\nWeight decay: 0.0 \nBatch size: 32\nNum devices: 2\n"
                        "Gradient accumulation steps: 2\nGlobal batch size: 32x2x2=128\n"),
            std::string::npos)
      << banner;
  EXPECT_NE(banner.find("\nSteps per epoch: 156\n"), std::string::npos);
  EXPECT_NE(banner.find("\nAMP level: O0\nLoss scaler: {'type': 'static', 'loss_scale': 1.0}\n"
                        "Drop overflow update: False\n"),
            std::string::npos);
  config.system.amp_level = AmpLevel::kO2;
  config.system.drop_overflow_update = true;
  config.loss_scaler =
      LossScalerConfig{.dynamic = true, .loss_scale = 512, .scale_factor = 2, .scale_window = 1000};
  EXPECT_NE(training_banner(config, {})
                .find("\nAMP level: O2\nLoss scaler: {'type': 'dynamic', 'loss_scale': 512.0, "
                      "'scale_factor': 2.0, 'scale_window': 1000}\nDrop overflow update: True\n"),
            std::string::npos);
}

TEST(Lines, ADroppedUpdate) {
  auto report = step();
  report.loss_scale = LossScaleState{256, 0, 3};
  EXPECT_EQ(dropped_line(report, 5),
            "epoch: [1/5] step: [10/156], gradients overflowed, update dropped (3 so far), "
            "loss scale: 256.0");
}

TEST(TrainingLog, RecordsInTheFile) {
  EXPECT_EQ(log_record("2026-01-31 12:00:00", "lockstep.train", Severity::kInfo, "text"),
            "[2026-01-31 12:00:00] lockstep.train INFO - text\n");
  const TempFolder dir;
  {
    TrainingLog log({dir / "log_1.txt", false, parse_severity("logging.WARNING")});
    log.info("lockstep.train", "not this");
    log.write(Severity::kError, "lockstep.train", "but this");
    log.plain("epoch: 1 step: 1, loss is 2.3025854");
  }
  const auto text = read_file(dir / "log_1.txt");
  EXPECT_EQ(text.find("not this"), std::string::npos);
  EXPECT_EQ(text[0], '[');
  EXPECT_NE(text.find("] lockstep.train ERROR - but this\nepoch: 1 step: 1, loss is"),
            std::string::npos);
}

TEST(TrainingLog, AFullDiskCostsAWarningOnce) {
  ::testing::internal::CaptureStderr();
  TrainingLog log({"/dev/full", false, Severity::kInfo});
  log.plain("one");
  log.info("lockstep.train", "two");
  const auto said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("/dev/full"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(TrainingLog, AFileThatCannotBeOpenedCostsAWarning) {
  const TempFolder dir;
  ::testing::internal::CaptureStderr();
  TrainingLog log({dir / "none" / "log_0.txt", false, Severity::kInfo});
  log.plain("one");
  const auto said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("log_0.txt"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(TrainingLog, WhatEndsARunIsInItsFile) {
  const TempFolder dir;
  TrainingLog log({dir / "log_0.txt", true, Severity::kInfo});
  ::testing::internal::CaptureStdout();
  EXPECT_THROW(log_failure(log, "lockstep.train", [] { throw std::runtime_error("no disk"); }),
               std::runtime_error);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(read_file(dir / "log_0.txt").find("] lockstep.train ERROR - no disk\n"),
            std::string::npos);
}

TEST(Lines, WarnsOfAnEvaluationOfNothing) {
  EvalResult result{.samples = 3, .loss = 0.5, .metrics = {{"acc", 1.0}}};
  EXPECT_TRUE(evaluation_warnings(result).empty());
  result.samples = 0;
  result.faults = 2;
  result.warnings = {"a warning"};
  EXPECT_EQ(evaluation_warnings(result),
            (std::vector<std::string>{"a warning", faults_line(2, "evaluated"),
                                      "no sample could be evaluated: the figures are 0"}));
}

TEST(Lines, NanHasOneSpelling) {
  StepReport report;
  report.loss = std::copysign(std::nan(""), -1.0);
  report.logged = {{"box", report.loss}};
  report.shown = 1;
  for (const auto& line : {mindocr_step_line(report, 1, 1, 1), mindspore_step_line(report)}) {
    EXPECT_EQ(line.find("-nan"), std::string::npos) << line;
    EXPECT_NE(line.find("nan"), std::string::npos) << line;
  }
}

TEST(Lines, WarnsOfFiguresThatAreNotNumbers) {
  const double nan = std::nan("");
  const EvalResult result{
      .samples = 3, .loss = nan, .metrics = {{"acc", 1.0}, {"neg_rmse", nan}, {"auc", -nan}}};
  EXPECT_EQ(
      evaluation_warnings(result),
      (std::vector<std::string>{
          "neg_rmse, auc, loss of this evaluation: nan. Such a figure makes no checkpoint the "
          "best, and for early stopping and reduce_on_plateau it is no improvement"}));
}

TEST(RunSummary, Arithmetic) {
  Config config;
  config.scheduler.num_epochs = 3;
  config.train.loader = {.batch_size = 4, .drop_remainder = false, .prefetch_size = 1};
  config.train.gradient_accumulation_steps = 2;
  RunSummary summary;
  summary.num_ranks = summary.num_virtual_ranks = 2;
  summary.train_samples = 17;
  summary.parameters = summary.trainable = 1 << 20;
  summary = complete_summary(summary, config, 2, 4 * 48);
  EXPECT_EQ(summary.samples_a_rank, 9);
  EXPECT_EQ(summary.steps_per_epoch, 3);
  EXPECT_EQ(summary.optimizer_steps, 6);
  EXPECT_EQ(summary.optimizer_bytes, 8 << 20);
  config.train.max_steps = 5;
  config.train.loader.drop_remainder = true;
  summary = complete_summary(summary, config, 1, 4 * 48);
  EXPECT_EQ(summary.steps_per_epoch, 2);
  EXPECT_EQ(summary.optimizer_steps, 3);
  EXPECT_NE(describe(summary, config).find("optimizer 4.0 MiB"), std::string::npos);
}

TEST(RunSummary, AResumedRunCountsItsStepsFromThoseDone) {
  TrainSection train;
  train.gradient_accumulation_steps = 2;
  EXPECT_EQ(all_optimizer_steps({7, 3, 2, 5}, train), 7 + 2 + 2 * 3);
  EXPECT_EQ(all_optimizer_steps({7, 3, 0, 5}, train), 7 + 2);
  EXPECT_EQ(all_optimizer_steps({7, 5, -1, 5}, train), 7) << "all epochs are done";
  train.max_steps = 8;
  EXPECT_EQ(all_optimizer_steps({7, 3, 2, 5}, train), 8);
}

// 1000 samples have three steps of 256, on eight ranks as on one.
TEST(RunSummary, OfAGlobalBatchHasWholeOptimizerSteps) {
  Config config;
  config.scheduler.num_epochs = 1;
  config.train.loader = {.batch_size = 32, .drop_remainder = true};
  config.parallel.global_batch = 256;
  RunSummary summary;
  summary.train_samples = 1000;
  for (const int ranks : {1, 8}) {
    summary.num_ranks = summary.num_virtual_ranks = ranks;
    config.train.gradient_accumulation_steps = 8 / ranks;
    summary = complete_summary(summary, config, 1, 4 * 48);
    EXPECT_EQ(summary.steps_per_epoch, 24 / ranks);
    EXPECT_EQ(summary.optimizer_steps, 3);
  }
  config.train.loader.drop_remainder = false;
  EXPECT_EQ(complete_summary(summary, config, 1, 4 * 48).optimizer_steps, 4);
  EXPECT_NE(std::string(error_of([&] { require_batch(0, 125, config); }).what())
                .find("fewer samples than parallel.global_batch (256)"),
            std::string::npos);
}

// Weights of 2 bytes and float32 masters; gradients of 2 bytes for each sum of virtual ranks, and
// float32.
TEST(RunSummary, OfMixedPrecision) {
  Config config;
  config.train.loader = {.batch_size = 4};
  config.system.amp_level = AmpLevel::kO1;
  RunSummary summary;
  summary.num_virtual_ranks = 2;
  summary.train_samples = 17;
  summary.parameters = summary.trainable = 1 << 20;
  EXPECT_EQ(complete_summary(summary, config, 1, 4 * 48).weights_bytes, 4 << 20);
  config.train.ema = true;
  EXPECT_EQ(complete_summary(summary, config, 1, 4 * 48).weights_bytes, 8 << 20);
  config.train.ema = false;
  EXPECT_NE(describe(summary, config)
                .find("\nPrecision: amp_level O1: convolutions and matrix products in bfloat16 "
                      "(libtorch has no float16 convolutions on the CPU), weights float32; loss "
                      "scale 1\nRanks"),
            std::string::npos)
      << describe(summary, config);
  config.system.amp_level = AmpLevel::kO2;
  config.loss_scaler = LossScalerConfig{.dynamic = true, .loss_scale = 512};
  const auto full = complete_summary(summary, config, 1, 4 * 48);
  EXPECT_EQ(full.weights_bytes, 6 << 20);
  EXPECT_EQ(full.gradient_bytes, (2 * 2 + 4) << 20);
  EXPECT_EQ(full.optimizer_bytes, 4 << 20);
  EXPECT_NE(precision_line(config).find("all but batch norm in bfloat16"), std::string::npos);
  EXPECT_NE(precision_line(config).find("loss scale 512 at first, times 2 after 2000 clean steps"),
            std::string::npos);
  EXPECT_EQ(precision_line(Config()), "");
}

TEST(RunSummary, OfVirtualRanks) {
  Config config;
  config.train.loader = {.batch_size = 4, .drop_remainder = true, .prefetch_size = 1};
  config.parallel.virtual_ranks = 8;
  RunSummary summary;
  summary.num_ranks = 2;
  summary.num_virtual_ranks = 8;
  summary.train_samples = 130;
  summary.parameters = summary.trainable = 1 << 20;
  summary = complete_summary(summary, config, 0, 4 * 48);
  EXPECT_EQ(summary.samples_a_virtual_rank, 17);
  EXPECT_EQ(summary.samples_a_rank, 68);
  EXPECT_EQ(summary.steps_per_epoch, 4);
  EXPECT_EQ(summary.gradient_bytes, 3 * (4 << 20));            // of 4 virtual ranks: log2(4) + 1
  EXPECT_EQ(summary.batches_bytes, 4 * 4 * (2 + 1) * 48 * 4);  // two ahead of a thread, one in use
  EXPECT_NE(describe(summary, config).find("Batch: 4 x 8 virtual ranks x 1 accumulated = 32\n"),
            std::string::npos);
  summary.data_threads = 7;
  EXPECT_EQ(complete_summary(summary, config, 0, 4 * 48).batches_bytes, 4 * 4 * (8 + 1) * 48 * 4);
  config.train.gradient_accumulation_steps = 2;
  EXPECT_EQ(complete_summary(summary, config, 0, 4 * 48).gradient_bytes, 5 * (4 << 20));
}

// 3, 3 and 2: rank 1 has virtual rank 3 alone and then 4 and 5.
TEST(RunSummary, OfVirtualRanksThatAreNotEquallyMany) {
  Config config;
  config.train.loader = {.batch_size = 4, .drop_remainder = true, .prefetch_size = 1};
  config.parallel.virtual_ranks = 8;
  RunSummary summary;
  summary.num_ranks = 3;
  summary.num_virtual_ranks = 8;
  summary.train_samples = 130;
  summary.parameters = summary.trainable = 1 << 20;
  summary = complete_summary(summary, config, 0, 4 * 48);
  EXPECT_EQ(summary.samples_a_rank, 51);
  EXPECT_EQ(summary.steps_per_epoch, 4);
  EXPECT_EQ(summary.gradient_bytes, 3 * (4 << 20));
  EXPECT_EQ(summary.batches_bytes, 4 * 3 * (2 + 1) * 48 * 4);
  EXPECT_NE(describe(summary, config).find("Samples: 130 (at most 51 a rank)"), std::string::npos);
  config.train.gradient_accumulation_steps = 2;
  EXPECT_EQ(complete_summary(summary, config, 0, 4 * 48).gradient_bytes, 4 * (4 << 20));
}

}  // namespace
}  // namespace lockstep
