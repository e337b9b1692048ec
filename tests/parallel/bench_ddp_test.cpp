// `lockstep bench ddp` as a user runs it.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

class BenchDdp : public ::testing::Test {
 protected:
  int bench(const std::string& args) const {
    const std::string command = env_or("LOCKSTEP_BIN_DIR", ".") + "/lockstep bench ddp " + args +
                                " >/dev/null 2>" + (folder_ / "err").string();
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string said() const { return read_file(folder_ / "err"); }

  TempFolder folder_;
};

TEST_F(BenchDdp, WritesOneRecord) {
  const auto file = folder_ / "f.json";
  for (const std::string mode : {"ddp", "independent"}) {
    ASSERT_EQ(bench("--model mlp3m --ranks 2 --mode " + mode + " --steps 2 --warmup 0 --json " +
                    file.string()),
              0)
        << said();
    const auto records = nlohmann::json::parse(read_file(file));
    ASSERT_EQ(records.size(), 1u);
    const auto& record = records[0];
    EXPECT_EQ(record.at("bench"), "ddp");
    EXPECT_EQ(record.at("model"), "mlp3m");
    EXPECT_EQ(record.at("mode"), mode);
    EXPECT_EQ(record.at("ranks"), 2);
    EXPECT_EQ(record.at("batch"), 64);
    for (const char* key : {"step_ms_min", "step_ms_p50", "images_per_s", "comm_exposed_ms"}) {
      ASSERT_TRUE(record.at(key).is_number()) << key;
      EXPECT_TRUE(std::isfinite(record.at(key).get<double>())) << key;
    }
    EXPECT_GT(record.at("step_ms_min"), 0);
    EXPECT_GE(record.at("step_ms_p50"), record.at("step_ms_min"));
    EXPECT_EQ(record.at("comm_exposed_ms") > 0, mode == "ddp");
  }
}

TEST_F(BenchDdp, IsOneRankOfAJobThatALauncherStarted) {
  const auto file = folder_ / "f.json";
  const std::string bin = env_or("LOCKSTEP_BIN_DIR", ".");
  const std::string command = bin + "/lockstep run --nproc_per_node 2 -- " + bin +
                              "/lockstep-bench-ddp --model mlp3m --steps 2 --warmup 0 "
                              "--comm_hook bf16 --json " +
                              file.string() + " >" + (folder_ / "out").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto record = nlohmann::json::parse(read_file(file)).at(0);
  EXPECT_EQ(record.at("ranks"), 2);
  EXPECT_EQ(record.at("comm_hook"), "bf16");
  EXPECT_NE(read_file(folder_ / "out").find("mlp3m ddp (bf16) x2 batch 64"), std::string::npos);
}

TEST_F(BenchDdp, BadCallsExitWithTwoAndOneLine) {
  for (const std::string bad : {"--rnaks 2", "--ranks 0", "--model resnet51", "--mode dpp",
                                "--comm_hook bf61", "--steps", "--json /no/such/folder/f.json"}) {
    EXPECT_EQ(bench(bad), 2) << bad;
    const auto text = said();
    EXPECT_TRUE(text.starts_with("lockstep bench ddp: error: ")) << bad << ": " << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << bad << ": " << text;
  }
}

}  // namespace
}  // namespace lockstep
