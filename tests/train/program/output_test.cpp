// The output and the files of a run.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "lockstep/base/file.h"
#include "tests/support/read_metrics.h"
#include "tests/train/program/program.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// 20 test records over 2 ranks and batches of 16: nothing counts twice.
TEST_P(ProgramOf, TrainsEvaluatesAndSaysWhereThingsAre) {
  const bool averages = GetParam() == 2;
  const std::string ema = averages ? " train.ema=True" : " train.ema=False";
  const auto result = train("-o scheduler.num_epochs=1" + ema, GetParam());
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto* text :
       {"\nTotal number of trainable parameters: 1528106\n", "epoch: [1/1] step: [1/",
        "epoch: [1/1], loss: ", "Performance: {'acc': ", "=> Best acc: ", "Training completed!",
        "Top K checkpoints:\nacc\tcheckpoint\n", "\nCheckpoint: out/latest (best: out/best)\n",
        "\nLog: out/log_0.txt, metrics: out/metrics.jsonl, curves: out/result.svg\n", "\nNext: "}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << " in\n" << result.out;
  }
  for (const auto* file :
       {"args.yaml", "train_config.yaml", "log_0.txt", "metrics.jsonl", "result.log", "result.svg",
        "confusion.csv", "confusion.svg", "latest/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(folder_ / "out" / file)) << file;
  }
  EXPECT_EQ(bytes("out/train_config.yaml"), kConfig);
  EXPECT_EQ(bytes("out/result.log").find("Epoch\tloss\tacc\ttop_5\ttrain_time\teval_time\n1\t"),
            0u);
  const auto last = read_metrics(folder_ / "out/metrics.jsonl").back();
  EXPECT_EQ(last.kind, "eval");
  EXPECT_EQ(last.value("samples"), 20);
  EXPECT_TRUE(last.text("time") && last.text("run") && last.text("host"));
  EXPECT_EQ(last.value("rank"), 0);
  EXPECT_LT(result.out.find("Results: out ("), result.out.find("epoch: [1/1] step: [1/"));
  std::set<std::string> kinds;
  for (const auto& event : read_metrics(folder_ / "out/events.jsonl")) {
    kinds.insert(event.kind);
    EXPECT_EQ(event.epoch, 1) << event.kind;  // the only one
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"start", "checkpoint", "evaluation", "end"}));
  // The same weights evaluated alone, with the other number of ranks.
  const auto again = train("--eval -o" + ema, 3 - GetParam());
  ASSERT_EQ(again.status, 0) << again.err;
  const auto line = result.out.substr(result.out.find("Performance: {"));
  const auto figures = line.substr(0, line.find('}') + 1);
  EXPECT_NE(again.out.find(figures), std::string::npos) << figures << " in\n" << again.out;
  EXPECT_NE(again.out.find(averages ? "Weights: out/best/ema.safetensors\n"
                                    : "Weights: out/best/model.safetensors\n"),
            std::string::npos)
      << again.out;
  EXPECT_TRUE(bytes("out/confusion.csv").starts_with("true class,circle,ring,"));
  EXPECT_EQ(bytes("out/confusion_eval.csv"), bytes("out/confusion.csv"));
}

/// The number of processes that loaded libtorch while two ranks ran. The loader writes a file for
/// each started process, none for a forked one.
int loads_of_two_ranks(const fs::path& folder, const std::function<Outcome(std::string)>& run,
                       const std::string& variables) {
  fs::create_directory(folder);
  const auto done =
      run("env LD_DEBUG=files LD_DEBUG_OUTPUT=" + (folder / "loader").string() +
          " OMP_NUM_THREADS=2 " + variables + " " + lockstep_program() +
          " run --nproc_per_node 2 -- " + lockstep_program() + " train -c c.yaml --check");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err.find("before start_fork_server()"), std::string::npos) << done.err;
  return static_cast<int>(
      std::count_if(fs::directory_iterator(folder), fs::directory_iterator(), [](const auto& file) {
        return read_file(file.path()).find("libtorch_cpu") != std::string::npos;
      }));
}

TEST_F(Program, RanksOfSeveralThreadsAreForked) {
  const auto start = [this](const std::string& command) { return run(command); };
  EXPECT_EQ(loads_of_two_ranks(folder_ / "forked", start, ""), 1);
  EXPECT_EQ(loads_of_two_ranks(folder_ / "loaded", start, "LOCKSTEP_FORK_SERVER=0"), 2);
}

TEST_F(Program, ResultsMayGoWhereTheProgramStands) {
  const std::string args =
      "-o train.ckpt_save_dir=. train.max_steps=1 system.val_while_train=False";
  ASSERT_EQ(train(args).status, 0);
  const auto again = train(args);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.out.find("Results of an earlier run are now in ./earlier.1"), std::string::npos)
      << again.out;
  EXPECT_TRUE(fs::exists(folder_ / "earlier.1/step_000001"));
}

TEST_F(Program, MixedPrecisionIsSaidAndDone) {
  const std::string low =
      "-o train.loader.batch_size=4 system.amp_level=O2 system.amp_level_infer=O1 "
      "system.drop_overflow_update=True \"loss_scaler={type: dynamic, loss_scale: 512}\" "
      "train.max_steps=3";
  const auto outcome = train(low, 2);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("amp_level O2: all but batch norm in bfloat16"), std::string::npos);
  EXPECT_NE(outcome.out.find("AMP level: O2"), std::string::npos);
  const auto records = read_metrics(folder_ / "out/metrics.jsonl");
  EXPECT_EQ(records.at(2).value("loss_scale"), 512);
  EXPECT_EQ(records.at(2).value("dropped_steps"), 0);
  const auto evaluated = train(low + " --eval");
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find("AMP level: O1"), std::string::npos) << evaluated.out;
  EXPECT_NE(evaluated.out.find("Performance: {'acc': "), std::string::npos) << evaluated.out;
  EXPECT_NE(train(low + " --check").out.find("Precision: amp_level O2"), std::string::npos);
  const auto wrong = train("-o system.amp_level=O7");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("system.amp_level must be one of O0, O1, O2, O3"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
