// Past runs in the lists: end to end.

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using Words = std::vector<std::string>;

class Ended : public ::testing::Test {
 protected:
  std::map<std::string, std::string> variables() const {
    return {{"LOCKSTEP_JOBS_DIR", folder_ / "jobs"}};
  }
  Words words(const std::string& id, const std::string& script) const {
    return shell(2, script, {"--rdzv_id", id, "--log_dir", folder_ / "logs"});
  }
  std::string said(const Words& verb, int code = 0) const {
    Launched run(verb, variables());
    EXPECT_EQ(run.wait(), code) << run.err();
    return run.out() + run.err();
  }
  nlohmann::json listed(const Words& verb) const { return nlohmann::json::parse(said(verb)); }
  const TempFolder folder_;
};

TEST_F(Ended, HowAndWhyIsListedWithAll) {
  Launched bad(words("bad", "[ $RANK = 0 ] || { echo no such data >&2; exit 3; }; exec sleep 600"),
               variables());
  EXPECT_EQ(bad.wait(), 3);
  Launched good(words("good", "true"), variables());
  EXPECT_EQ(good.wait(), 0);
  EXPECT_EQ(listed({"ps", "--json"}).size(), 0U);
  const auto all = listed({"ps", "--all", "--json"});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["run_id"], "good");
  EXPECT_EQ(all[0]["exit_code"], 0);
  EXPECT_EQ(all[0]["why"], "");
  EXPECT_EQ(all[1]["run_id"], "bad");
  EXPECT_EQ(all[1]["over"], true);
  EXPECT_EQ(all[1]["exit_code"], 3);
  EXPECT_GT(all[1]["ended"], all[1]["began"]);
  const std::string why = all[1]["why"];
  EXPECT_TRUE(has(why, "rank 1 (") && has(why, ": no such data")) << why;
  const std::string table = said({"ps", "--all"});
  EXPECT_TRUE(has(table, "exit code 3, ")) << table;
  EXPECT_TRUE(has(table, " ago (rank 1: no such data)  ")) << table;
  EXPECT_TRUE(has(table, "exit code 0, ")) << table;
  EXPECT_EQ(times_in(table, " ("), 1) << table;
}

TEST_F(Ended, OneThatWasKilledHasNoEnd) {
  Launched run(words("killed", "echo ready; exec sleep 600"), variables());
  ASSERT_TRUE(run.wait_for("ready", 1));
  for (int i = 0; i < 1000 && listed({"ps", "--json"}).empty(); ++i) {
  }
  await_records(folder_ / "jobs/past", 1);
  EXPECT_EQ(listed({"ps", "--all", "--json"}).size(), 1U) << "it runs: once";
  run.send(SIGKILL);
  run.wait();
  ASSERT_TRUE(run.wait_all_gone());
  const auto all = listed({"ps", "--all", "--json"});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].contains("exit_code"));
  EXPECT_TRUE(has(said({"ps", "--all"}), "was killed"));
}

TEST_F(Ended, OneWithoutFilesIsListedAsWell) {
  Launched bad(shell(1, "echo no such data >&2; exit 3", {"--rdzv_id", "bad"}), variables());
  EXPECT_EQ(bad.wait(), 3);
  Launched stopped(shell(1, "echo ready; exec sleep 600", {"--rdzv_id", "stopped"}), variables());
  ASSERT_TRUE(stopped.wait_for("ready"));
  stopped.send(SIGTERM);
  EXPECT_EQ(stopped.wait(), 143);
  const auto all = listed({"ps", "--all", "--json"});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["run_id"], "stopped");
  EXPECT_EQ(all[0]["exit_code"], 143);
  EXPECT_EQ(all[1]["run_id"], "bad");
  EXPECT_EQ(all[1]["exit_code"], 3);
  const std::string why = all[1]["why"];
  EXPECT_TRUE(has(why, ": no such data")) << why;
  EXPECT_EQ(said({"logs", "bad"}, 2),
            "lockstep logs: error: run bad is over and kept no logs; lockstep run --log_dir DIR "
            "keeps them\n");
  EXPECT_TRUE(has(said({"inspect", "bad"}, 2), "or had a --log_dir"));
}

TEST_F(Ended, AnIdThatIsNotRememberedIsSaid) {
  EXPECT_TRUE(has(said({"logs", "night"}, 2), "none that is over is remembered by that ID"));
}

}  // namespace
}  // namespace lockstep::testing
