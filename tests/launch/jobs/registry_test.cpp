#include "lockstep/launch/jobs/registry.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/launch/jobs/job_control.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace lockstep {
namespace {

JobEntry job(const std::string& run_id, pid_t pid = 7) {
  JobEntry entry;
  entry.pid = pid;
  entry.run_id = run_id;
  entry.command = {"sh", "-c", "echo \"x\""};
  return entry;
}

TEST(ProcessKey, IsAFoldersNameAndBack) {
  const ProcessKey own = own_key();
  EXPECT_EQ(own.pid, ::getpid());
  const auto again = ProcessKey::parse(own.text());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text(), own.text());
  for (const char* text : {"", "1", "1.2", "1.2.3.4", "a.2.3", "0.2.3", "1.-2.3", "1..3",
                           "99999999999999999999.1.1"}) {
    EXPECT_FALSE(ProcessKey::parse(text)) << text;
  }
}

TEST(ProcessKey, AnotherProcessOfTheSameNumberIsNotThisOne) {
  const ProcessKey own = own_key();
  EXPECT_EQ(liveness(own, own), Liveness::kAlive);
  ProcessKey earlier = own;
  earlier.started += "1";
  EXPECT_EQ(liveness(earlier, own), Liveness::kDead);
  ProcessKey elsewhere = own;
  elsewhere.namespace_id += "1";
  EXPECT_EQ(liveness(elsewhere, own), Liveness::kElsewhere);
}

TEST(JobEntry, TravelsAsJson) {
  JobEntry entry = job("run");
  entry.log_folder = "/logs";
  entry.world_size = 4;
  const auto again = job_entry_from_json(to_json(entry));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(entry));
  EXPECT_FALSE(job_entry_from_json("{}"));
  EXPECT_FALSE(job_entry_from_json("nothing"));
}

TEST(Registry, StandsWhereTheUserSaysAndNowhereElse) {
  const std::vector<std::string> given = {"/x/jobs"};
  EXPECT_EQ(registry_folders({{"LOCKSTEP_JOBS_DIR", "/x/jobs"}, {"XDG_RUNTIME_DIR", "/run"}}),
            given);
  const auto usual = registry_folders({{"LOCKSTEP_JOBS_DIR", ""}, {"XDG_RUNTIME_DIR", "/run"}});
  ASSERT_EQ(usual.size(), 2U);
  EXPECT_EQ(usual[0], "/run/lockstep");
}

TEST(Registry, AnAgentIsListedWhileItLives) {
  const TempFolder folder;
  const std::vector<std::string> registries = {(folder / "jobs").string()};
  {
    JobFile own(registries);
    EXPECT_TRUE(list_jobs(registries).empty()) << "it has said nothing yet";
    own.write(job("run"));
    own.write(job("run"));
    const auto jobs = list_jobs(registries);
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0].run_id, "run");
  }
  EXPECT_FALSE(std::filesystem::exists(registries[0])) << "nothing is left";
}

TEST(Registry, WhatADeadAgentLeftIsCleared) {
  const TempFolder folder;
  const std::string registry = (folder / "jobs").string();
  ::mkdir(registry.c_str(), 0700);
  ProcessKey dead = own_key();
  dead.started += "1";
  ProcessKey elsewhere = own_key();
  elsewhere.namespace_id += "1";
  const auto file = [&](const ProcessKey& key) { return registry + "/" + key.text() + ".json"; };
  for (const auto& key : {dead, elsewhere}) std::ofstream(file(key)) << to_json(job("run"));
  EXPECT_TRUE(list_jobs({registry}).empty());
  EXPECT_FALSE(std::filesystem::exists(file(dead)));
  EXPECT_TRUE(std::filesystem::exists(file(elsewhere))) << "not ours to judge";
}

TEST(Registry, AFolderThatOthersCanWriteToIsNotUsed) {
  const TempFolder folder;
  const std::string open = (folder / "open").string();
  ::mkdir(open.c_str(), 0700);
  ::chmod(open.c_str(), 0777);
  JobFile none({open});
  none.write(job("run"));
  EXPECT_FALSE(none.written());
  EXPECT_TRUE(std::filesystem::is_empty(open));
  JobFile second({open, (folder / "own").string()});
  second.write(job("run"));
  EXPECT_TRUE(second.written());
  EXPECT_EQ(list_jobs({(folder / "own").string()}).size(), 1U);
}

TEST(StopChoice, NothingIsEndedThatIsNotNamed) {
  const std::vector<JobEntry> jobs = {job("abc", 1), job("abd", 2)};
  const auto said = [](const std::vector<JobEntry>& there, const std::string& name, bool all) {
    const Error error = error_of([&] { jobs_to_stop(there, name, all, 0, 0); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  EXPECT_EQ(jobs_to_stop(jobs, "abd", false, 0, 0).size(), 1U);
  EXPECT_EQ(jobs_to_stop(jobs, "", true, 0, 0).size(), 2U);
  EXPECT_TRUE(jobs_to_stop({}, "", true, 0, 0).empty());
  const std::string one = said({jobs[0]}, "", false);
  EXPECT_NE(one.find("('lockstep stop abc'), or --all"), std::string::npos) << one;
  EXPECT_NE(one.find("\nRUN "), std::string::npos) << one;
  EXPECT_NE(one.find("\nabc  1 "), std::string::npos) << one;
  EXPECT_NE(said({}, "", false).find("none of this user runs"), std::string::npos);
  EXPECT_NE(said(jobs, "abc", true).find("not both"), std::string::npos);
}

TEST(Registry, JobsAreNamedByIdBeginningOrProcess) {
  const std::vector<JobEntry> jobs = {job("abc", 1), job("abd", 2), job("abd", 3), job("x", 4)};
  EXPECT_EQ(find_jobs(jobs, "abd").size(), 2U);
  EXPECT_EQ(find_jobs(jobs, "3").size(), 1U);
  EXPECT_EQ(find_jobs(jobs, "abc")[0].pid, 1);
  EXPECT_EQ(find_jobs({jobs[1], jobs[2]}, "").size(), 2U);
  EXPECT_NE(
      std::string(error_of([&] { find_jobs(jobs, ""); }).what()).find("say which: abc, abd, x"),
      std::string::npos);
  EXPECT_NE(std::string(error_of([&] { find_jobs(jobs, "ab"); }).what()).find("abc, abd"),
            std::string::npos);
  EXPECT_NE(
      std::string(error_of([&] { find_jobs(jobs, "zz"); }).what()).find("no job 'zz' runs here"),
      std::string::npos);
  EXPECT_NE(std::string(error_of([&] { find_jobs({}, ""); }).what()).find("no job of this user"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
