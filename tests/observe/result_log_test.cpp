#include "lockstep/observe/result_log.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

TEST(ResultLog, WritesMindOcrsRows) {
  const TempFolder dir;
  ResultLog log(dir / "result.log", {"recall", "f-score"});
  log.write({1, 2.30258, {{}, {}}, 12.3, {}});
  log.write({2, 1.5, {0.5, 0.66666}, 12.25, 1.2});
  EXPECT_EQ(read_file(dir / "result.log"),
            "Epoch\tloss\trecall\tf-score\ttrain_time\teval_time\n"
            "1\t2.3026\tNA\tNA\t12.3000\tNA\n"
            "2\t1.5000\t0.5000\t0.6667\t12.2500\t1.2000\n");
  EXPECT_EQ(error_of([&] { log.write({3, 1, {0.5}, 1, 1}); }).code(), ErrorCode::kInvalidArgument);
}

TEST(ResultLog, WithoutEvaluation) {
  const TempFolder dir;
  ResultLog(dir / "r", {}).write({1, 0.5, {}, 3, {}});
  EXPECT_EQ(read_file(dir / "r"), "Epoch\tloss\ttrain_time\n1\t0.5000\t3.0000\n");
}

TEST(ResultLog, ResumingKeepsTheEpochsBefore) {
  const TempFolder dir;
  {
    ResultLog log(dir / "r", {"acc"});
    for (int64_t epoch = 1; epoch <= 3; ++epoch) log.write({epoch, 1, {0.5}, 1, 1});
  }
  ResultLog(dir / "r", {"acc"}, 2).write({3, 9, {0.75}, 1, 1});
  EXPECT_EQ(read_file(dir / "r"),
            "Epoch\tloss\tacc\ttrain_time\teval_time\n1\t1.0000\t0.5000\t1.0000\t1.0000\n"
            "2\t1.0000\t0.5000\t1.0000\t1.0000\n3\t9.0000\t0.7500\t1.0000\t1.0000\n");
  { const ResultLog log(dir / "r", {"acc"}); }
  EXPECT_EQ(read_file(dir / "r"), "Epoch\tloss\tacc\ttrain_time\teval_time\n");
}

TEST(ResultLog, ALaterEvaluationGoesIntoTheRowOfItsEpoch) {
  const TempFolder dir;
  ResultLog log(dir / "r", {"recall", "f-score"});
  log.write({1, 2.5, {0.1, 0.2}, 3, 4});
  log.write({2, 1.5, {{}, {}}, 5, {}});
  log.add_evaluation({.epoch = 2, .metrics = {0.3, 0.4}, .eval_time = 6});
  log.write({3, 0.5, {{}, {}}, 7, {}});
  EXPECT_EQ(read_file(dir / "r"),
            "Epoch\tloss\trecall\tf-score\ttrain_time\teval_time\n"
            "1\t2.5000\t0.1000\t0.2000\t3.0000\t4.0000\n"
            "2\t1.5000\t0.3000\t0.4000\t5.0000\t6.0000\n"
            "3\t0.5000\tNA\tNA\t7.0000\tNA\n");
  log.add_evaluation({.epoch = 9, .metrics = {0.3, 0.4}, .eval_time = 6});  // has no row
  EXPECT_EQ(read_file(dir / "r").find("\n9"), std::string::npos);
}

TEST(ResultLog, OtherColumnsAndDamagedRowsAreSetAside) {
  const TempFolder dir;
  ResultLog(dir / "r", {"acc"}).write({1, 1, {0.5}, 1, 1});
  const std::string other = read_file(dir / "r");
  ResultLog(dir / "r", {"top5"}, 1).write({2, 1, {0.5}, 1, 1});
  EXPECT_EQ(read_file(dir / "r"),
            "Epoch\tloss\ttop5\ttrain_time\teval_time\n2\t1.0000\t0.5000\t1.0000\t1.0000\n");
  EXPECT_EQ(read_file(dir / "r.1"), other);
  write_file_atomically(dir / "r", "Epoch\tloss\tacc\ttrain_time\teval_time\nx\t1\n");
  { const ResultLog log(dir / "r", {"acc"}, 1); }
  EXPECT_EQ(read_file(dir / "r"), "Epoch\tloss\tacc\ttrain_time\teval_time\n");
  EXPECT_TRUE(std::filesystem::exists(dir / "r.2"));
}

TEST(ResultLog, NanHasOneSpelling) {
  const TempFolder dir;
  const double nan = std::nan("");
  ResultLog log(dir / "r", {"acc", "auc"});
  log.write({1, -nan, {nan, std::copysign(nan, -1.0)}, 1, 1});
  EXPECT_EQ(read_file(dir / "r"),
            "Epoch\tloss\tacc\tauc\ttrain_time\teval_time\n1\tnan\tnan\tnan\t1.0000\t1.0000\n");
}

TEST(ResultLog, ResumingWithoutAFileStartsOne) {
  const TempFolder dir;
  { const ResultLog log(dir / "r", {"acc"}, 4); }
  EXPECT_EQ(read_file(dir / "r"), "Epoch\tloss\tacc\ttrain_time\teval_time\n");
}

}  // namespace
}  // namespace lockstep
