// Failing writes, and their cost.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "lockstep/base/file.h"
#include "tests/train/program/program.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

TEST_F(Program, FullDiskLeavesNoHalfCheckpoint) {
  const auto result = run("bash -c \"trap \\\"\\\" XFSZ; ulimit -f 5000; exec " +
                          lockstep_program() + " train -c c.yaml -o train.max_steps=1\"");
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_NE(result.err.find("lockstep train: error: "), std::string::npos) << result.err;
  for (const auto& entry : fs::directory_iterator(folder_ / "out")) {
    EXPECT_EQ(entry.path().filename().string().find("step_"), std::string::npos) << entry.path();
  }
}

TEST_F(Program, LogsThatCannotBeWrittenCostWarnings) {
  fs::create_directories(folder_ / "out/log_0.txt");
  fs::create_directories(folder_ / "out/result.log/in the way");
  const auto with_full_stdout = [&](const std::string& args) {
    return run("bash -c \"exec " + lockstep_program() + " train -c c.yaml " + args +
               " > /dev/full\"");
  };
  const auto result = with_full_stdout("-o train.max_steps=1");
  EXPECT_EQ(result.status, 0) << result.err;
  for (const auto* lost : {"log_0.txt", "result.log", "standard output"}) {
    EXPECT_NE(result.err.find(lost), std::string::npos) << lost << " in\n" << result.err;
  }
  EXPECT_TRUE(fs::exists(folder_ / "out/latest/state.json"));
  EXPECT_EQ(with_full_stdout("--eval").status, 1) << "its figures are all that it is for";
}

TEST_F(Program, CurvesThatCannotBeDrawnCostAWarning) {
  fs::create_directories(folder_ / "out/result.svg/in the way");
  const auto result = train("-o train.max_steps=1 system.val_while_train=False");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("no curves: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("result.svg"), std::string::npos) << result.out;
  EXPECT_TRUE(fs::exists(folder_ / "out/latest/state.json"));
}

TEST_F(Program, ADivergedRunLeavesItsCurves) {
  const auto result = train(
      "-o scheduler.scheduler=constant scheduler.lr=1000000 system.val_while_train=False "
      "train.max_steps=50");
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_TRUE(fs::exists(folder_ / "out/result.svg"));
}

// The remains of a power cut, and another set of columns.
TEST_F(Program, LogsThatCannotBeGoneOnFromCostNoRun) {
  ASSERT_EQ(train("-o scheduler.num_epochs=1 system.val_while_train=False").status, 0);
  const std::string metrics = bytes("out/metrics.jsonl");
  const std::string zeros(30, '\0');
  write_file_atomically(folder_ / "out/metrics.jsonl", metrics + zeros + "\n");
  const auto on = train("-o scheduler.num_epochs=2 model.resume=True");
  EXPECT_EQ(on.status, 0) << on.err;
  EXPECT_NE(on.err.find("metrics.jsonl.1, and the run goes on"), std::string::npos) << on.err;
  EXPECT_NE(on.err.find("result.log.1, and the run goes on"), std::string::npos) << on.err;
  EXPECT_EQ(bytes("out/metrics.jsonl").find(metrics), 0U);
  EXPECT_EQ(bytes("out/metrics.jsonl.1"), metrics + zeros + "\n");
}

}  // namespace
}  // namespace lockstep
