#include "lockstep/launch/jobs/registry.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "lockstep/base/namespaces.h"
#include "lockstep/error.h"
#include "lockstep/launch/jobs/job_control.h"
#include "lockstep/launch/jobs/job_table.h"
#include "lockstep/launch/jobs/past_jobs.h"
#include "lockstep/progress.h"
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

TEST(JobControl, OneNameAtATime) {
  EXPECT_EQ(only_name({}, "lockstep stop"), "");
  EXPECT_EQ(only_name({"a"}, "lockstep stop"), "a");
  EXPECT_THROW(only_name({"a", "b"}, "lockstep stop"), Error);
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

// All hosts and boots number their first namespace alike.
TEST(ProcessKey, TellsHostsApart) {
  EXPECT_NE(own_key().namespace_id, std::to_string(namespace_id("pid")));
}

TEST(OwnFiles, AreInAFolderThatMayBeWritten) {
  const TempFolder folder;
  const std::string own = folder.path();
  EXPECT_TRUE(own_file_base({{"XDG_RUNTIME_DIR", own}}).starts_with(own + "/lockstep-"));
  EXPECT_TRUE(own_file_base({{"XDG_RUNTIME_DIR", "/nowhere"}}).starts_with("/tmp/lockstep-"));
  EXPECT_TRUE(own_file_base({{"XDG_RUNTIME_DIR", ""}}).starts_with("/tmp/lockstep-"));
}

TEST(JobEntry, TravelsAsJson) {
  JobEntry entry = job("run");
  entry.log_folder = "/logs";
  entry.world_size = 4;
  const auto again = job_entry_from_json(to_json(entry));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again), to_json(entry));
  const std::string older = R"({"pid": 1, "run_id": "r", "node_rank": 0, "num_nodes": 1,
      "first_rank": 0, "local_size": 1, "world_size": 1, "restart_count": 0, "began": 1.5,
      "host": "h", "folder": "/", "log_folder": "", "attempt_folder": "", "command": ["x"])";
  EXPECT_TRUE(job_entry_from_json(older + "}"));
  EXPECT_TRUE(job_entry_from_json(older + R"(, "locked": true})")->locked);
  EXPECT_FALSE(job_entry_from_json(older + R"(, "locked": 1})"));
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

// Its pid means nothing here, but the lock on its entry shows whether it lives.
TEST(Registry, WhatADeadAgentOfAnotherNamespaceLeftIsCleared) {
  const TempFolder folder;
  const std::string registry = (folder / "jobs").string();
  const std::string mine = registry + "/" + own_key().text() + ".json";
  const std::string theirs = mine.substr(0, mine.size() - 5) + "1.json";
  {
    JobFile own({registry});
    own.write(job("run"));
    own.write(job("again"));
    std::filesystem::rename(mine, theirs);  // as an agent of another namespace has it
    EXPECT_TRUE(list_jobs({registry}).empty());
    EXPECT_TRUE(std::filesystem::exists(theirs)) << "it lives";
    std::filesystem::create_hard_link(theirs, folder / "left");
    std::filesystem::rename(theirs, mine);
  }
  // As if its agent and its watchdog had been killed.
  ::mkdir(registry.c_str(), 0700);
  std::filesystem::rename(folder / "left", theirs);
  EXPECT_TRUE(list_jobs({registry}).empty());
  EXPECT_FALSE(std::filesystem::exists(theirs));
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

TEST(PastJobs, StandInAFolderOfTheUsersOwn) {
  EXPECT_EQ(past_jobs_folder({{"LOCKSTEP_JOBS_DIR", "/x"}, {"HOME", "/h"}}), "/x/past");
  EXPECT_EQ(past_jobs_folder({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}}), "/s/lockstep/past");
  EXPECT_EQ(past_jobs_folder({{"HOME", "/usr"}}), "/usr/.local/state/lockstep/past");
  EXPECT_EQ(past_jobs_folder({{"HOME", "/nonexistent"}}), "") << "it is not made";
  EXPECT_EQ(past_jobs_folder({}), "");
}

TEST(PastJobs, AreRememberedWithTheirFilesAndFoundByName) {
  const TempFolder folder;
  const std::string past = (folder / "jobs/past").string();
  JobEntry entry = job("night");
  entry.log_folder = entry.attempt_folder = (folder / "gone").string();
  remember_job(past, entry);
  EXPECT_EQ(past_jobs(past).size(), 0U);
  entry.log_folder = entry.attempt_folder = folder.path().string();
  remember_job(past, entry);
  ASSERT_EQ(past_jobs(past).size(), 1U);
  EXPECT_EQ(past_jobs(past)[0].run_id, "night");
  for (size_t i = 0; i < kMostPastJobs + 20; ++i) {
    std::ofstream(past + "/1." + std::to_string(i) + ".3.json") << to_json(entry);
  }
  remember_job(past, entry);
  EXPECT_EQ(past_jobs(past).size(), kMostPastJobs);
  ::chmod((folder / "jobs").c_str(), 0777);
  std::filesystem::remove_all(past);
  remember_job(past, entry);
  EXPECT_FALSE(std::filesystem::exists(past)) << "others can write there";
}

TEST(PastJobs, WithoutFilesTakeNoPlaceOfThoseWithFiles) {
  const TempFolder folder;
  const std::string past = (folder / "jobs/past").string();
  JobEntry night = job("night");
  night.log_folder = night.attempt_folder = folder.path().string();
  remember_job(past, night);
  const JobEntry short_run = job("short");
  for (size_t i = 0; i < kMostPastJobs + 20; ++i) {
    remember_job(past, short_run);
    const std::string name = past + "/1." + std::to_string(i) + ".3.no_files.json";
    for (const auto& file : std::filesystem::directory_iterator(past)) {
      if (file.path().string().ends_with(own_key().text() + ".no_files.json"))
        std::filesystem::rename(file.path(), name);
    }
  }
  remember_job(past, short_run);
  const auto jobs = past_jobs(past);
  EXPECT_EQ(jobs.size(), kMostPastJobs + 1);
  EXPECT_EQ(find_past_job(jobs, "night").size(), 1U);
}

TEST(PastJobs, AreRememberedUnderAnyUmask) {
  const TempFolder folder;
  JobEntry entry = job("night");
  entry.log_folder = entry.attempt_folder = folder.path().string();
  for (const mode_t mask : {0, 002, 077}) {
    const std::string past = (folder / std::to_string(mask)).string() + "/state/lockstep/past";
    const mode_t before = ::umask(mask);
    remember_job(past, entry);
    ::umask(before);
    EXPECT_EQ(past_jobs(past).size(), 1U) << "umask " << mask;
  }
}

TEST(PastJobs, OfSeveralRunsByANameTheNewestIsMeant) {
  const auto past_job = [](const std::string& id, double began, int node_rank) {
    JobEntry entry = job(id);
    entry.began = began;
    entry.num_nodes = 2;
    entry.node_rank = node_rank;
    return entry;
  };
  const std::vector<JobEntry> past = {past_job("night", 9, 0), past_job("night", 9, 1),
                                      past_job("nightly", 8, 0), past_job("night", 3, 1)};
  EXPECT_EQ(find_past_job(past, "night").size(), 2U);
  EXPECT_EQ(find_past_job(past, "night")[1].began, 9);
  EXPECT_EQ(find_past_job(past, "nightl")[0].run_id, "nightly");
  EXPECT_TRUE(find_past_job(past, "day").empty());
  EXPECT_TRUE(find_past_job(past, "").empty());
}

TEST(ProgressMemory, HoldsWhatAWorkerReports) {
  const ProgressMemory memory(2);
  EXPECT_EQ(memory.steps(), Steps::kUnknown);
  ::setenv("LOCKSTEP_STEPS", memory.path().c_str(), 1);
  ::setenv("LOCKSTEP_LOCAL_RANK", "1", 1);
  expect_steps();
  EXPECT_EQ(memory.steps(), Steps::kNone);
  report_step();
  report_step();
  EXPECT_EQ(memory.steps(), Steps::kSome);
  auto ranks = read_progress_memory(memory.path());
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].local_rank, 1);
  EXPECT_EQ(ranks[0].step, 2);
  EXPECT_EQ(ranks[0].begun_step, 1);
  EXPECT_GT(ranks[0].begun_ns, 0);
  EXPECT_LT(ranks[0].begun_ns, ranks[0].stepped_ns);
  EXPECT_GT(ranks[0].step_seconds, 0);
  const std::string note = std::string(100, 'x') + "\x1b";
  report_step({.step = 9, .total = 10, .loss = 0.5, .note = note, .epoch = 2, .num_epochs = 5});
  ranks = read_progress_memory(memory.path());
  EXPECT_EQ(ranks[0].step, 9);
  EXPECT_EQ(ranks[0].epoch, 2);
  EXPECT_EQ(ranks[0].num_epochs, 5);
  EXPECT_EQ(ranks[0].note, std::string(47, 'x'));
  {
    const ReportedWork work("evaluation");
    const auto busy = read_progress_memory(memory.path());
    EXPECT_EQ(busy[0].work, "evaluation");
    EXPECT_EQ(busy[0].stepped_ns, ranks[0].stepped_ns);
    EXPECT_GE(busy[0].work_ns, ranks[0].stepped_ns);
  }
  const auto after = read_progress_memory(memory.path());
  EXPECT_EQ(after[0].work, "");
  EXPECT_GT(after[0].stepped_ns, ranks[0].stepped_ns) << "its time is no step's";
  EXPECT_FALSE(job_goes_on());
  memory.announce_job_goes_on();
  EXPECT_TRUE(job_goes_on());
  EXPECT_EQ(read_progress_memory(memory.path()).at(0).step, 9) << "and all else stays";
  EXPECT_TRUE(read_progress_memory("/nowhere").empty());
  EXPECT_TRUE(read_progress_memory("").empty());
  ::unsetenv("LOCKSTEP_STEPS");
  ::unsetenv("LOCKSTEP_LOCAL_RANK");
}

/// Memory with `bytes` in it, as another process may have made it.
UniqueFd memory_of(const void* bytes, size_t size) {
  UniqueFd memory(::memfd_create(kOwnStepsName, MFD_CLOEXEC));
  if (!memory || ::pwrite(memory.get(), bytes, size, 0) != static_cast<ssize_t>(size))
    throw io_error("memfd");
  return memory;
}

TEST(OwnSteps, AreReadIfTheyCanBe) {
  const auto read = [](const std::function<void(OwnSteps&)>& change) {
    OwnSteps steps;
    steps.magic = kOwnStepsMagic;
    steps.pid = 7;
    steps.pid_space = 8;
    steps.slot.mark = kStepped;
    steps.slot.step = 4;
    change(steps);
    return read_own_steps(memory_of(&steps, sizeof steps).get());
  };
  const auto report = read([](OwnSteps& steps) { steps.slot.note[0] = '\x1b'; });
  ASSERT_TRUE(report);
  EXPECT_EQ(report->pid, 7);
  EXPECT_EQ(report->pid_space, 8U);
  EXPECT_EQ(report->steps.step, 4);
  EXPECT_EQ(report->steps.note, "?");
  const auto unended = read([](OwnSteps& steps) {
    std::fill_n(steps.slot.note, sizeof steps.slot.note, 'x');
    std::fill_n(steps.slot.work, sizeof steps.slot.work, 'y');
  });
  ASSERT_TRUE(unended);
  EXPECT_EQ(unended->steps.note, std::string(48, 'x'));
  EXPECT_EQ(unended->steps.work, std::string(24, 'y'));

  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.magic = 1; }));
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.slot.mark = 0; })) << "nothing is reported yet";
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.slot.version = 3; })) << "it is being written";
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.slot.step = kLeast; }));
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.slot.total = kLeast; }));
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.slot.stepped_ns = kLeast; }));
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.slot.work_ns = kLeast; }));
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.slot.step_seconds = 1e300; }));
  EXPECT_FALSE(read([](OwnSteps& steps) { steps.slot.step_seconds = std::nan(""); }));
}

TEST(OwnSteps, AnotherSizeIsNoneOfThem) {
  std::array<std::byte, 2 * sizeof(OwnSteps)> bytes{};
  std::memcpy(bytes.data(), &kOwnStepsMagic, sizeof kOwnStepsMagic);
  for (const size_t size :
       {size_t{0}, size_t{8}, sizeof(OwnSteps) - 1, sizeof(OwnSteps) + 1, bytes.size()}) {
    EXPECT_FALSE(read_own_steps(memory_of(bytes.data(), size).get())) << size;
  }
  EXPECT_FALSE(read_own_steps(-1));
}

TEST(JobProgress, IsThatOfTheFirstRankThatMadeAStep) {
  constexpr int64_t kSecond = 1'000'000'000;
  RankSteps waits{.local_rank = 0, .mark = kExpectsSteps};
  RankSteps steps{.local_rank = 1, .mark = kStepped, .step = 4, .total = 10, .loss = 2};
  EXPECT_FALSE(progress_of({}, 0));
  EXPECT_FALSE(progress_of({waits}, 0));
  EXPECT_EQ(progress_of({waits, steps}, 9 * kSecond)->step, 4);
  EXPECT_EQ(progress_of({steps}, 9 * kSecond)->note, "");
  EXPECT_EQ(progress_of({steps}, 40 * kSecond)->note, "no step for 40 s");
  steps.work = "evaluation";
  steps.work_ns = 5 * kSecond;
  EXPECT_EQ(progress_of({steps}, 9 * kSecond)->note, "");
  EXPECT_EQ(progress_of({steps}, 40 * kSecond)->note, "evaluation for 35 s");
  steps.work = "";
  steps.step_seconds = 60;
  EXPECT_EQ(progress_of({steps}, 40 * kSecond)->note, "");
  EXPECT_EQ(progress_of({steps}, 0)->seconds_left, 360);
}

TEST(JobProgress, TheTimeLeftCountsWhatComesBetweenSteps) {
  constexpr int64_t kSecond = 1'000'000'000;
  RankSteps steps{.mark = kStepped, .step = 120, .total = 200, .step_seconds = 1};
  EXPECT_EQ(progress_of({steps}, 0)->seconds_left, 80) << "until there is more";
  steps.begun_ns = 50 * kSecond;
  steps.begun_step = 100;  // it was restarted
  steps.stepped_ns = 130 * kSecond;
  EXPECT_EQ(progress_of({steps}, 140 * kSecond)->seconds_left, 320)
      << "4 s a step, evaluations too";
  steps.work = "evaluation";
  EXPECT_EQ(progress_of({steps}, 150 * kSecond)->seconds_left, 400) << "and one that goes on";
  steps.seconds_left = 7;
  EXPECT_EQ(progress_of({steps}, 150 * kSecond)->seconds_left, 7);
}

TEST(JobTable, ShowsWhatIsKnown) {
  JobEntry quiet = job("one", 1);
  const std::string without = job_table({quiet}, 0, 0);
  EXPECT_EQ(without.find("STEP"), std::string::npos) << without;
  JobEntry trains = job("two", 2);
  trains.progress = JobProgress{812, 5000, 1.2345, 440, 0.105, "no step for 40 s"};
  const std::string table = job_table({quiet, trains}, 0, 0);
  EXPECT_NE(table.find("  STEP           LOSS   SPEED        LEFT  NOTE              COMMAND\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("  812/5000 16 %  1.234  105 ms/step  7:20  no step for 40 s  sh"),
            std::string::npos)
      << table;
  EXPECT_EQ(table.find("EPOCH"), std::string::npos) << table;
  trains.progress->epoch = 2;
  trains.progress->num_epochs = 5;
  EXPECT_NE(job_table({trains}, 0, 0).find("  2/5    812/5000 16 %  "), std::string::npos)
      << job_table({trains}, 0, 0);
  trains.progress->loss = std::nan("");
  EXPECT_NE(jobs_as_json({trains}, 0).find("\"loss\": null"), std::string::npos);
}

TEST(JobTable, SaysWhyAJobFailedInOneShortLine) {
  JobEntry failed = job("one", 1);
  failed.over = true;
  failed.ended = 10;
  failed.exit_code = 3;
  EXPECT_EQ(end_of_job(failed, 15), "exit code 3, 5 s ago");
  failed.cause = "rank 1: \x1b[31mno data";
  EXPECT_EQ(end_of_job(failed, 15), "exit code 3, 5 s ago (rank 1: ?[31mno data)");
  failed.cause = std::string(44, 'x') + "\u00e4 and more words";
  EXPECT_EQ(end_of_job(failed, 15), "exit code 3, 5 s ago (" + std::string(44, 'x') + "...)");
  EXPECT_EQ(jobs_as_json({failed}, 15).find("\"cause\""), std::string::npos);
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
