// Runs that resume from a checkpoint, or start anew beside one.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <tuple>

#include "tests/support/read_metrics.h"
#include "tests/train/program/program.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

INSTANTIATE_TEST_SUITE_P(Ranks, ProgramOf, ::testing::Values(1, 2));

TEST_P(ProgramOf, InterruptedRunGivesTheBitsOfTheWholeOne) {
  const bool remembers = GetParam() == 2;  // a hook with a state
  const std::string few =
      std::string("-o train.loader.batch_size=4 system.val_while_train=False ") +
      (remembers ? "parallel.comm_hook=int8 " : "");
  const auto whole = train(few + "train.ckpt_save_dir=whole train.max_steps=6", GetParam());
  ASSERT_EQ(whole.status, 0) << whole.err;
  ASSERT_EQ(train(few + "train.ckpt_save_dir=parts train.max_steps=3", GetParam()).status, 0);
  const auto rest =
      train(few + "train.ckpt_save_dir=parts train.max_steps=6 model.resume=True", GetParam());
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_NE(rest.out.find("Resume train from epoch: 1, step: 4"), std::string::npos) << rest.out;
  for (const auto* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(bytes(std::string("whole/step_000006/") + file) ==
                bytes(std::string("parts/step_000006/") + file))
        << file;
  }
  for (const auto* file : {"averaging_0.safetensors", "averaging_1.safetensors"}) {
    const auto path = std::string("/step_000006/") + file;
    EXPECT_EQ(fs::exists(folder_ / ("parts" + path)), remembers);
    if (!remembers) continue;
    EXPECT_TRUE(bytes("whole" + path) == bytes("parts" + path)) << file;
  }
  const auto records = read_metrics(folder_ / "parts/metrics.jsonl");
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records[5].value("loss"),
            read_metrics(folder_ / "whole/metrics.jsonl")[5].value("loss"));
}

TEST_F(Program, ALatestCheckpointThatIsGoneIsSaid) {
  const std::string few =
      "-o train.loader.batch_size=2 system.val_while_train=False train.ckpt_save_steps=1 ";
  ASSERT_EQ(train(few + "train.max_steps=2").status, 0);
  fs::remove_all(folder_ / "out/step_000002");
  const std::string warning =
      "out/latest points to step_000002, which is no whole checkpoint any more: step_000001 is "
      "taken";
  const auto check = train("--check " + few + "model.resume=True");
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_NE(check.err.find(warning), std::string::npos) << check.err;
  const auto result = train(few + "train.max_steps=3 model.resume=True");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("WARNING - " + warning), std::string::npos) << result.out;
  const auto again = train(few + "train.max_steps=3 model.resume=True");
  EXPECT_EQ(again.out.find("which is no whole"), std::string::npos) << again.out;
}

TEST_F(Program, ARunThatIsToGoOnAndFindsNoCheckpointSaysThatItStartsAnew) {
  const std::string few =
      "-o train.loader.batch_size=2 system.val_while_train=False train.max_steps=1 "
      "model.resume=True ";
  const std::string line = "no checkpoint in out: the run starts anew\n";
  const auto check = train("--check " + few);
  EXPECT_EQ(check.status, 0) << check.err;
  EXPECT_EQ(text_count(check.err, line), 1) << check.err;
  const auto first = train(few, 2);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(text_count(first.out, "WARNING - " + line), 1) << first.out;
  const auto again = train(few);
  EXPECT_EQ(again.out.find("starts anew"), std::string::npos) << again.out;
  // As elastic.sbatch does after a requeue.
  const auto requeued = run("env SLURM_RESTART_COUNT=1 " + lockstep_program() +
                            " train -c c.yaml " + few + "train.ckpt_save_dir=other");
  ASSERT_EQ(requeued.status, 0) << requeued.err;
  EXPECT_NE(requeued.out.find("INFO - no checkpoint in other: the run starts anew"),
            std::string::npos)
      << requeued.out;
}

// Step lines count the steps of an epoch for the present ranks; all other numbers count the run's.
TEST_F(Program, WhoGoesOnWithinAnEpochSaysHowItsStepsAreCounted) {
  const std::string few = "-o system.val_while_train=False train.loader.batch_size=4 ";
  ASSERT_EQ(train(few + "train.max_steps=6").status, 0);
  const auto same = train(few + "model.resume=True train.max_steps=8");
  ASSERT_EQ(same.status, 0) << same.err;
  EXPECT_TRUE(std::regex_search(
      same.out, std::regex("Resume train from epoch: 1, step: 7 of the run \\(as metrics.jsonl and "
                           "checkpoints count\\), after \\[6/[0-9]+\\] of the epoch\n")))
      << same.out;
  EXPECT_EQ(same.out.find("is dealt to"), std::string::npos) << same.out;
  const auto more = train(few + "model.resume=True train.max_steps=9", 2);
  ASSERT_EQ(more.status, 0) << more.err;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      more.out, found,
      std::regex("32 of [0-9]+ samples of epoch 1 were used by 1 rank; the rest is dealt to 2 in "
                 "([0-9]+) steps, and an epoch's steps are counted for 2 ranks from here: "
                 "\\[([0-9]+)/([0-9]+)\\] are done\n")))
      << more.out;
  EXPECT_EQ(std::stoi(found[1]) + std::stoi(found[2]), std::stoi(found[3]));
  const auto next = fmt::format(" step: [{}/{}], ", std::stoi(found[2]) + 1, found[3].str());
  EXPECT_NE(more.out.find(next), std::string::npos) << next << " in\n" << more.out;
  EXPECT_TRUE(
      std::regex_search(more.out, std::regex("step: 9 of the run .*, after \\[" + found[2].str() +
                                             "/" + found[3].str() + "\\] of the epoch\n")))
      << more.out;
}

TEST_F(Program, TheSameCommandGivesTheSameBitsAndKeepsEarlierResults) {
  const std::string args =
      "-o train.max_steps=3 system.val_while_train=False system.log_style=mindspore";
  ASSERT_EQ(train(args, 2).status, 0);
  const auto second = train(args, 2);
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_NE(second.out.find("Results of an earlier run are now in out.1"), std::string::npos);
  EXPECT_NE(second.out.find("\nepoch: 1 step: 1, loss is "), std::string::npos) << second.out;
  for (const int step : {1, 2, 3}) {
    for (const int rank : {0, 1}) {
      const auto line = fmt::format("[{}] epoch: 1 step: {}, loss is ", rank, step);
      EXPECT_EQ(text_count(second.marked, line), 1) << line << "in\n" << second.marked;
    }
  }
  EXPECT_NE(second.out.find("\nSteps: 3 in "), std::string::npos) << second.out;
  EXPECT_NE(second.out.find(" on all 2 ranks\n"), std::string::npos) << second.out;
  EXPECT_NE(second.out.find(" WARNING - data is a synthetic data set"), std::string::npos)
      << second.out;
  const std::string weights = "/step_000003/model.safetensors";
  EXPECT_TRUE(bytes("out.1" + weights) == bytes("out" + weights));
  EXPECT_NE(
      second.out.find("\nNext: the same command with --eval to evaluate the weights, or with -o "
                      "model.resume=True train.max_steps=0 to go on to the end of epoch 3\n"),
      std::string::npos)
      << second.out;
  // Resuming from the first run must not mix its results with the second's.
  const auto third = train(
      "-o model.resume=out.1 train.max_steps=4 system.val_while_train=False "
      "train.ckpt_save_dir=out/",
      2);
  ASSERT_EQ(third.status, 0) << third.err;
  EXPECT_NE(third.out.find("Results of an earlier run are now in out.2"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "out.2/step_000003/model.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "out/step_000003"));
  EXPECT_TRUE(fs::exists(folder_ / "out/step_000004"));
}

TEST_F(Program, AFinishedRunSaysThatNothingIsLeft) {
  const std::string few = "-o train.loader.batch_size=4 system.val_while_train=False ";
  ASSERT_EQ(train(few + "train.max_steps=2").status, 0);
  const std::string weights = bytes("out/latest/model.safetensors");
  const auto steps = train(few + "train.max_steps=2 model.resume=True", 2);
  EXPECT_EQ(steps.status, 0) << steps.err;
  const std::string nothing = "There is nothing left to train: the checkpoint has ";
  EXPECT_EQ(text_count(steps.out, nothing + "2 steps of 2 (train.max_steps)"), 1) << steps.out;
  for (const auto* part : {"Results: out", "Checkpoint: out/latest"}) {
    EXPECT_NE(steps.out.find(part), std::string::npos) << steps.out;
  }
  for (const auto* part : {"Start training", "Resume train"}) {
    EXPECT_EQ(steps.out.find(part), std::string::npos) << steps.out;
  }
  EXPECT_TRUE(bytes("out/latest/model.safetensors") == weights);
  ASSERT_EQ(train(few + "scheduler.num_epochs=1 model.resume=True").status, 0);
  const auto epochs = train(few + "scheduler.num_epochs=1 model.resume=True");
  EXPECT_EQ(epochs.status, 0) << epochs.err;
  EXPECT_EQ(text_count(epochs.out, nothing + "1 epoch of 1 (scheduler.num_epochs)"), 1)
      << epochs.out;
}

// 3 of 25 steps of an epoch of 100 samples, then a resume with other ranks, batches and
// accumulation.
TEST_F(Program, GoesOnWithinAnEpochWithOtherBatches) {
  const std::string args = "-o train.loader.batch_size=4 system.val_while_train=False ";
  ASSERT_EQ(train(args + "train.max_steps=3").status, 0);
  int64_t step = 3;
  for (const auto& [other, ranks, text] :
       {std::tuple<std::string, int, std::string>{"train.loader.batch_size=2", 2, "12 of 100"},
        {"train.loader.batch_size=3", 1, "16 of 100"},
        {"parallel.virtual_ranks=4", 1, "19 of 100"},
        {"train.gradient_accumulation_steps=2", 2, ""}}) {
    ++step;
    const auto result = train(
        args + "model.resume=True train.max_steps=" + std::to_string(step) + " " + other, ranks);
    EXPECT_EQ(result.status, 0) << other << "\n" << result.err;
    EXPECT_NE(result.out.find(text), std::string::npos) << result.out;
  }
  const auto check = train("--check " + args + "model.resume=True");
  EXPECT_EQ(check.status, 0) << check.err;
  const auto fewer = train("--check " + args + "model.resume=True train.dataset.sample_ratio=0.1");
  EXPECT_EQ(fewer.status, 2) << fewer.out;
  EXPECT_NE(fewer.err.find("and the data have 10"), std::string::npos) << fewer.err;
}

// Four pictures a virtual rank and step, on one rank and on two, with three and two virtual ranks.
TEST_F(Program, VirtualRanksGiveTheSameBitsOnOtherRanks) {
  const std::string args =
      "-o parallel.virtual_ranks=5 train.max_steps=3 train.loader.batch_size=4 "
      "train.ckpt_save_dir=";
  const auto one = train(args + "one");
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_NE(one.out.find("Virtual ranks: 5, 5 on each rank, intra-op threads: 1."),
            std::string::npos);
  EXPECT_NE(one.out.find("\nNum virtual ranks: 5\nGlobal batch size: 4x5x1=20\n"),
            std::string::npos);
  EXPECT_EQ(one.out.find("Averaged steps"), std::string::npos) << one.out;
  const auto two = train(args + "two parallel.measure_wait=True", 2);
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_NE(two.out.find("Virtual ranks: 5, 2 or 3 on each rank"), std::string::npos) << two.out;
  const auto times = two.out.find("\nAveraged steps: 3, mean: forward ");
  ASSERT_NE(times, std::string::npos) << two.out;
  EXPECT_NE(two.out.find(" ms, waiting for slower ranks ", times), std::string::npos) << two.out;
  for (const auto* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(bytes(std::string("one/step_000003/") + file) ==
                bytes(std::string("two/step_000003/") + file))
        << file;
  }
  const auto records = read_metrics(folder_ / "one/metrics.jsonl");
  const auto others = read_metrics(folder_ / "two/metrics.jsonl");
  ASSERT_EQ(records.size(), 4u);  // the last is an evaluation
  ASSERT_EQ(others.size(), 4u);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].value("loss"), others[i].value("loss")) << i;
    for (const char* time : {"forward_ms", "backward_ms", "comm_hidden_ms", "slowest_wait_ms"}) {
      EXPECT_EQ(others[i].value(time).has_value(), others[i].kind == "train") << time;
      EXPECT_FALSE(records[i].value(time).has_value()) << time;
    }
  }
  const auto more = train("--check -o parallel.virtual_ranks=1", 2);
  EXPECT_EQ(more.status, 2) << more.err;
  EXPECT_NE(more.err.find("2 ranks cannot share 1 virtual rank: each needs at least one; start at "
                          "most 1 rank, or take more virtual ranks"),
            std::string::npos)
      << more.err;
}

}  // namespace
}  // namespace lockstep
