// Runs that their launcher restarts after a failure.

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/observe/metrics.h"
#include "tests/support/read_metrics.h"
#include "tests/train/program/program.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Steps of ResNet-18 are long enough to be killed in.
TEST_F(Program, AKilledWorkerGivesTheBitsAndLossesOfAnUndisturbedRun) {
  write_file_atomically(folder_ / "c.yaml", config_of(kResnet18));
  const std::string few =
      "-o train.loader.batch_size=2 system.val_while_train=False train.max_steps=20 "
      "train.ckpt_save_steps=2 system.ckpt_max_keep=1 ";
  const auto whole = train(few + "train.ckpt_save_dir=whole", 2);
  ASSERT_EQ(whole.status, 0) << whole.err;
  // In its first attempt rank 1 is killed once a checkpoint exists. It is stopped before, in step 4
  // or soon after: on a slow disk the run would be over.
  const std::string killer =
      "if [ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then"
      "  (until grep -q '\"step\": *3,' parts/metrics.jsonl 2>/dev/null; do sleep 0.01; done;"
      "   kill -STOP $$; while [ ! -e parts/latest ]; do sleep 0.01; done; kill -KILL $$) & fi;"
      " exec \"$@\"";
  write_file_atomically(folder_ / "worker.sh", std::string_view(killer));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto killed = run("env PATH=" + path +
                          ":$PATH lockstep run --nproc_per_node 2 "
                          "--max_restarts 1 -- sh worker.sh lockstep train -c c.yaml " +
                          few + "train.ckpt_save_dir=parts");
  ASSERT_EQ(killed.status, 0) << killed.err;
  EXPECT_NE(killed.err.find("failed: SIGKILL"), std::string::npos) << killed.err;
  EXPECT_NE(killed.out.find("Resume train from epoch: 1, step: "), std::string::npos) << killed.out;
  for (const auto* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(bytes(std::string("whole/step_000020/") + file) ==
                bytes(std::string("parts/step_000020/") + file))
        << file;
  }
  EXPECT_EQ(losses_of(folder_ / "parts"), losses_of(folder_ / "whole"));
  EXPECT_EQ(losses_of(folder_ / "parts").size(), 20U);
  std::map<std::string, std::vector<MetricsRecord>> events;
  for (const MetricsRecord& event : read_metrics(folder_ / "parts/events.jsonl")) {
    events[event.kind].push_back(event);
    EXPECT_TRUE(seconds_of(event.text("time").value_or(""))) << event.kind;
  }
  EXPECT_EQ(events["start"].size(), 1U);
  ASSERT_EQ(events["restart"].size(), 1U);
  EXPECT_GE(events["restart"][0].value("steps_lost"), 0);
  EXPECT_GT(events["restart"][0].value("seconds_idle"), 0);
  EXPECT_GE(events["checkpoint"].size(), 2U);  // of 10: a disk slower than training gets the newest
  ASSERT_EQ(events["end"].size(), 1U);
  EXPECT_EQ(events["end"][0].text("reason"), "max_steps");
  EXPECT_NE(killed.out.find("Started again (start 2)"), std::string::npos) << killed.out;
}

TEST_F(Program, AJobThatFailsBeforeItsFirstCheckpointBeginsAnewInItsFolder) {
  // Rank 0 is killed after some steps of its first attempt, which are long.
  write_file_atomically(folder_ / "c.yaml", config_of(kResnet18));
  write_file_atomically(
      folder_ / "worker.sh",
      std::string_view("if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then"
                       "  (while [ ! -s out/metrics.jsonl ]; do sleep 0.01; done; kill -KILL $$) &"
                       " fi; exec \"$@\""));
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  const auto killed = run("env PATH=" + path +
                          ":$PATH lockstep run --max_restarts 1 -- sh worker.sh lockstep train -c "
                          "c.yaml -o train.loader.batch_size=2 system.val_while_train=False "
                          "train.max_steps=40");
  ASSERT_EQ(killed.status, 0) << killed.err;
  EXPECT_FALSE(fs::exists(folder_ / "out.1")) << "its results are no earlier run's";
  EXPECT_EQ(losses_of(folder_ / "out").size(), 40U);
  std::map<std::string, std::vector<MetricsRecord>> events;
  for (const auto& event : read_metrics(folder_ / "out/events.jsonl")) {
    events[event.kind].push_back(event);
  }
  EXPECT_EQ(events["start"].size(), 1U);
  ASSERT_EQ(events["restart"].size(), 1U);
  EXPECT_GE(events["restart"][0].value("steps_lost"), 1);
  EXPECT_GT(events["restart"][0].value("seconds_idle"), 0);
}

TEST_F(Program, OnlyResultsOfTheSameJobAreGoneOnFromAfterARestart) {
  const std::string few =
      "-o train.loader.batch_size=2 system.val_while_train=False train.max_steps=1 ";
  const std::string path = fs::path(lockstep_program()).parent_path().string();
  // A job of the same name, of another day.
  const auto first = run("env PATH=" + path +
                         ":$PATH lockstep run --rdzv_id night --max_restarts 1 -- "
                         "lockstep train -c c.yaml " +
                         few + "train.ckpt_save_dir=out");
  ASSERT_EQ(first.status, 0) << first.err;
  // The first attempt fails before it creates its folder.
  write_file_atomically(
      folder_ / "worker.sh",
      std::string_view("[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 1; exec \"$@\""));
  const auto again = run("env PATH=" + path +
                         ":$PATH lockstep run --rdzv_id night --max_restarts 1 -- "
                         "sh worker.sh lockstep train -c c.yaml " +
                         few + "train.ckpt_save_dir=out");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out.find("Resume train"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("Results of an earlier run are now in"), std::string::npos) << again.out;
}

// torchrun identifies jobs by --rdzv_id alone, and reports restarts, but no generations.
TEST_F(Program, UnderTorchrunAFailureBeforeTheFirstCheckpointGoesOnFromNoEarlierRun) {
  ASSERT_EQ(torchrun(0, "").status, 0);
  const auto steps = [&] { return losses_of(folder_ / "out").size(); };
  ASSERT_EQ(torchrun(1, "train.max_steps=4").status, 0);
  EXPECT_EQ(steps(), 4U) << "a restart of the same job goes on";
  ASSERT_NE(torchrun(0, "model.pretrained=False model.resume=nowhere").status, 0);
  const auto again = torchrun(1, "");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out.find("Resume train"), std::string::npos) << again.out;
  EXPECT_NE(again.out.find("Results of an earlier run are now in out.1"), std::string::npos)
      << again.out;
  EXPECT_EQ(steps(), 2U);
}

TEST_F(Program, AGenerationThatWasGivenUpMovesNoResults) {
  ASSERT_EQ(torchrun(2, "").status, 0);
  write_file_atomically(folder_ / "out/.job", std::string_view("another"));
  const auto late = torchrun(1, "");
  EXPECT_EQ(late.status, 1) << late.err;
  EXPECT_NE(late.err.find("generation 3 of this job writes into out"), std::string::npos)
      << late.err;
  EXPECT_FALSE(fs::exists(folder_ / "out.1"));
  EXPECT_TRUE(fs::exists(folder_ / "out/latest/state.json"));
}

TEST_F(Program, WhatIsWrongInALaterGenerationIsNotTheUsersMistake) {
  const auto early = run("env TORCHELASTIC_RESTART_COUNT=0 " + lockstep_program() +
                         " train -c c.yaml -o train.dataset.data_dir=nowhere");
  EXPECT_EQ(early.status, 2) << early.err;
  const auto later = run("env TORCHELASTIC_RESTART_COUNT=1 " + lockstep_program() +
                         " train -c c.yaml -o train.dataset.data_dir=nowhere");
  EXPECT_EQ(later.status, 1) << later.err;
  EXPECT_NE(later.err.find("nowhere"), std::string::npos) << later.err;
}

}  // namespace
}  // namespace lockstep
