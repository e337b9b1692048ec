// `lockstep bench collectives` as a user runs it.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"

namespace lockstep {
namespace {

int bench(const std::string& args) {
  const std::string command =
      env_or("LOCKSTEP_BIN_DIR", ".") + "/lockstep bench collectives " + args + " >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(BenchCollectives, WritesARecordForEachSize) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("lockstep-bench-" + std::to_string(::getpid()) + ".json");
  for (const std::string op : {"all_reduce", "all_gather", "send"}) {
    ASSERT_EQ(
        bench("--op " + op + " --ranks 2 --sizes 8:16,96K --seconds 0.01 --json " + file.string()),
        0);
    const auto records = nlohmann::json::parse(read_file(file));
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0].at("bench"), "collectives");
    EXPECT_EQ(records[0].at("op"), op);
    EXPECT_EQ(records[0].at("backend"), "native");
    EXPECT_EQ(records[0].at("ranks"), 2);
    EXPECT_EQ(records[0].at("dtype"), "float32");
    EXPECT_EQ(records[2].at("bytes"), 96 << 10);
    for (const auto& record : records) {
      EXPECT_GT(record.at("min_us"), 0);
      EXPECT_GE(record.at("p50_us"), record.at("min_us"));
      EXPECT_GE(record.at("p99_us"), record.at("p50_us"));
      for (const char* field : {"algbw_gbs", "busbw_gbs", "ceiling_gbs"}) {
        EXPECT_GT(record.at(field), 0) << field;
      }
    }
  }
  std::filesystem::remove(file);
}

/// A shell command whose $L is the program under test, and its exit code.
int shell(const std::string& command) {
  const std::string whole = "L=" + env_or("LOCKSTEP_BIN_DIR", ".") + "/lockstep; " + command;
  const int status = std::system(("{ " + whole + "; } >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(BenchCollectives, UnderALauncherItIsOneRank) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("lockstep-bench-launched-" + std::to_string(::getpid()) + ".json");
  ASSERT_EQ(shell("$L run --nproc_per_node 2 -- $L bench collectives --sizes 64,256K --seconds "
                  "0.01 --rounds 2 --json " +
                  file.string()),
            0);
  const auto records = nlohmann::json::parse(read_file(file));
  std::filesystem::remove(file);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].at("ranks"), 2);
  EXPECT_EQ(records[1].at("bytes"), 256 << 10);
  EXPECT_GT(records[1].at("p50_us"), 0);
  EXPECT_TRUE(records[1].at("ceiling_gbs").is_null());  // none between ranks that it did not start
  EXPECT_EQ(shell("RANK=0 WORLD_SIZE=1 $L bench collectives --ranks 2"), 2);
  EXPECT_EQ(shell("RANK=1 WORLD_SIZE=1 $L bench collectives"), 2);
}

TEST(BenchCollectives, ABackEndOfLibtorchsIsLeftToTheProgramThatLinksIt) {
  const auto program = env_or("LOCKSTEP_BIN_DIR", ".") + "/lockstep-bench-collectives";
  const bool has_libtorch = std::filesystem::exists(program);
  const std::string gloo = "$L bench collectives --backend c10d:gloo --sizes 64 --seconds 0.01";
  EXPECT_EQ(shell(gloo + (has_libtorch ? " 2>&1 | grep 'back end c10d:gloo,\\|without Gloo'"
                                       : " 2>&1 | grep 'which this program does not link'")),
            0);
  // Only that program has these back ends.
  EXPECT_EQ(
      shell("$L bench collectives --backend c10d:glo 2>&1 | grep \"unknown back end 'c10d:glo'" +
            std::string(has_libtorch ? ", did you mean 'c10d:gloo'" : "") + "\""),
      0);
}

TEST(BenchCollectives, BadFlagsExitWithTwo) {
  EXPECT_EQ(bench("--opp all_reduce"), 2);
  EXPECT_EQ(bench("--op all_reduec"), 2);
  EXPECT_EQ(bench("--sizes 4:x"), 2);
  EXPECT_EQ(bench("--sizes 1"), 2);
  EXPECT_EQ(bench("--ranks 0"), 2);
  EXPECT_EQ(bench("--rounds 0"), 2);
  EXPECT_EQ(bench("--backend natve"), 2);
  EXPECT_EQ(bench("--memory mine"), 2);
  EXPECT_EQ(bench("--json /no/such/folder/f.json"), 2);  // at once: the default takes minutes
}

}  // namespace
}  // namespace lockstep
