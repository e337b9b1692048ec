// Jobs of other launchers, recognised by their ranks' processes.

#include "lockstep/launch/jobs/other_jobs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/error.h"
#include "lockstep/launch/jobs/job_table.h"
#include "lockstep/launch/jobs/rank_origin.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

RankProcess process(pid_t pid, int rank, int size, const Environment& environment) {
  RankProcess process;
  process.pid = pid;
  process.rank = rank;
  process.size = size;
  process.ancestors = {50, 40};
  process.session = 40;
  process.began = pid;
  process.program = "/bin/worker";
  process.parent_program = "/bin/bash";
  process.parent_name = "bash";
  process.command = {"worker", "--fast"};
  process.environment = environment;
  return process;
}

Environment plain(int rank, int size, const std::string& port = "29500") {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "localhost"},
          {"MASTER_PORT", port}};
}

/// `environment` with more variables.
Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

Environment step(int rank, int size, const std::string& job) {
  return {{"SLURM_JOB_ID", job},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_TASKS", std::to_string(size)},
          {"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_LOCALID", std::to_string(rank)},
          {"SLURM_NODEID", "0"},
          {"SLURM_STEP_NODELIST", "host1"},
          {"SLURM_STEP_TASKS_PER_NODE", std::to_string(size)}};
}

Environment open_mpi(int rank, int size, const std::string& name) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(size)},
          {"OMPI_MCA_ess_base_jobid", name}};
}

TEST(RankOrigin, IsTheLauncherWhoseVariablesTellTheRank) {
  const auto said = [](int rank, int size, const Environment& environment) {
    const RankOrigin origin = origin_of(process(1, rank, size, environment));
    return origin.launcher + " " + origin.name;
  };
  EXPECT_EQ(said(1, 2, plain(1, 2)), "environment variables ");
  EXPECT_EQ(said(1, 2, with(plain(1, 2), {{"TORCHELASTIC_RUN_ID", "none"}})), "torchrun ");
  EXPECT_EQ(said(1, 2, with(plain(1, 2), {{"TORCHELASTIC_RUN_ID", "x-none"}})), "torchrun x-none");
  EXPECT_EQ(said(1, 2, with(plain(1, 2), {{"TORCHELASTIC_RUN_ID", "night"}})), "torchrun night");
  EXPECT_EQ(said(1, 2, step(1, 2, "12")), "srun slurm-12.0");
  EXPECT_EQ(said(1, 2, open_mpi(1, 2, "77")), "mpirun mpirun-77");
  EXPECT_EQ(said(1, 2, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), "mpiexec ");
  EXPECT_EQ(said(1, 2, {{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "dvm-3"}}), "prterun pmix-dvm-3");
  EXPECT_EQ(said(1, 2, {{"RANK_ID", "1"}, {"RANK_TABLE_FILE", "t.json"}}), "rank table ");
  EXPECT_EQ(said(1, 2, with(step(1, 2, "12"), plain(1, 2))), "srun slurm-12.0") << "by a script";
  EXPECT_EQ(said(0, 1, {}), "none ");
}

TEST(RankOrigin, IsNotALauncherThatStartedSomethingElse) {
  EXPECT_EQ(origin_of(process(1, 1, 4, plain(0, 1))).launcher, "bash") << "it said 0 of 1";
  EXPECT_EQ(origin_of(process(1, 1, 4, {{"RANK", "1"}})).launcher, "bash") << "incomplete";
  RankProcess forked = process(1, 1, 4, open_mpi(0, 2, "77"));
  forked.parent_program = forked.program;
  EXPECT_EQ(origin_of(forked).launcher, "spawn()");
}

TEST(OtherJobs, RanksOfOneEndpointAreOneJob) {
  RankProcess of_other_shell = process(12, 1, 2, plain(1, 2));
  of_other_shell.ancestors = {60};
  const auto jobs =
      other_jobs({of_other_shell, process(11, 0, 2, plain(0, 2)),
                  process(21, 0, 2, plain(0, 2, "29600")), process(9, 3, 4, plain(3, 4))});
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs[0].size, 4);
  EXPECT_EQ(jobs[1].id, "env-29500.11") << "of that name is the older job";
  EXPECT_EQ(jobs[1].launcher, "environment variables");
  ASSERT_EQ(jobs[1].ranks.size(), 2U);
  EXPECT_EQ(jobs[1].ranks[0].pid, 11);
  EXPECT_EQ(jobs[1].parent, 0) << "there are two";
  EXPECT_EQ(jobs[1].began(), 11);
  EXPECT_EQ(jobs[2].id, "env-29600");
}

TEST(OtherJobs, EachContainerHasALoopbackOfItsOwn) {
  const auto jobs_at = [](const std::string& address) {
    std::vector<RankProcess> ranks;
    for (const pid_t pid : {11, 12, 13, 14}) {
      auto environment = plain(pid % 2, 2);
      environment["MASTER_ADDR"] = address;
      ranks.push_back(process(pid, pid % 2, 2, environment));
      ranks.back().network = pid == 11 || pid == 14 ? "net:[1]" : "net:[2]";
    }
    return other_jobs(ranks);
  };
  const auto apart = jobs_at("localhost");
  ASSERT_EQ(apart.size(), 2U);
  EXPECT_EQ(apart[0].ranks[0].pid, 14);
  EXPECT_EQ(apart[0].ranks[1].pid, 11);
  EXPECT_EQ(jobs_at("10.0.0.1")[0].ranks[0].pid, 12) << "hosts of one job may be containers";
}

TEST(OtherJobs, ANameThatTheLauncherGivesCountsMost) {
  RankProcess elsewhere = process(12, 1, 2, step(1, 2, "12"));
  elsewhere.ancestors = {60};
  const auto jobs =
      other_jobs({process(11, 0, 2, step(0, 2, "12")), elsewhere,
                  process(13, 0, 2, step(0, 2, "13")), process(14, 1, 2, open_mpi(1, 2, "77"))});
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs[0].id, "slurm-12.0");
  EXPECT_EQ(jobs[0].ranks.size(), 2U);
  EXPECT_EQ(jobs[0].num_nodes, 1);
  EXPECT_EQ(jobs[1].id, "slurm-13.0");
  EXPECT_EQ(jobs[2].id, "mpirun-77");
}

TEST(OtherJobs, WithoutNameAndEndpointThoseOfOneParentOrSession) {
  RankProcess one = process(11, 0, 2, {});
  RankProcess two = process(12, 1, 2, {});
  RankProcess other = process(13, 1, 2, {});
  other.ancestors = {60};
  ASSERT_EQ(other_jobs({one, two, other}).size(), 2U);
  for (RankProcess* each : {&one, &two, &other}) each->ancestors.clear();
  const auto jobs = other_jobs({one, two});
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].id, "bash-11");
  other.session = 41;
  EXPECT_EQ(other_jobs({one, two, other}).size(), 2U);
}

TEST(OtherJobs, ThreadsOfOneProcessAreOneJob) {
  RankProcess thread = process(11, 0, 2, {});
  thread.is_thread = true;
  std::vector<RankProcess> ranks = {thread, thread, thread, thread};
  ranks[1].rank = ranks[3].rank = 1;
  ranks[2].pid = ranks[3].pid = 12;
  const auto jobs = other_jobs(ranks);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, "spawn-11");
  EXPECT_EQ(jobs[0].ranks.size(), 2U);
  EXPECT_EQ(how_to_end(jobs[0]), "Ctrl-C there, or kill 11");
}

// One shell starts the same loop twice, or again after an hour.
TEST(OtherJobs, NoJobHasARankTwice) {
  const auto jobs = other_jobs(
      {process(11, 0, 2, {}), process(21, 0, 2, {}), process(12, 1, 2, {}), process(22, 1, 2, {})});
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].ranks[1].pid, 12);
  EXPECT_EQ(jobs[1].ranks[1].pid, 22);
  EXPECT_NE(jobs[0].id, jobs[1].id);
}

TEST(OtherJobs, WorkersOfListedAgentsAreNone) {
  JobEntry agent;
  agent.pid = 40;
  agent.run_id = "night";
  const auto left = [&](const RankProcess& process, const Environment& own = {}) {
    return ranks_of_others({process}, {agent}, own, 100).size();
  };
  RankProcess rank = process(11, 0, 2, plain(0, 2));
  EXPECT_EQ(left(rank), 0U) << "the agent is the parent's parent";
  rank.ancestors = {50};
  EXPECT_EQ(left(rank), 1U);
  rank.environment["LOCKSTEP_RUN_ID"] = "night";
  EXPECT_EQ(left(rank), 0U);
  rank.environment["LOCKSTEP_RUN_ID"] = "day";
  EXPECT_EQ(left(rank), 1U) << "its agent is not listed";
  rank.began = 99;
  EXPECT_EQ(left(rank), 0U) << "its agent is not listed yet";
  rank.began = 11;
  EXPECT_EQ(left(rank, {{"LOCKSTEP_JOBS_DIR", "/x"}}), 0U);
  rank.environment["LOCKSTEP_JOBS_DIR"] = "/x";
  EXPECT_EQ(left(rank), 0U);
  EXPECT_EQ(left(rank, {{"LOCKSTEP_JOBS_DIR", "/x"}}), 1U);
}

TEST(OtherJobs, AreMeantByIdOrProcess) {
  const auto jobs =
      other_jobs({process(11, 0, 2, open_mpi(0, 2, "77")), process(12, 1, 2, open_mpi(1, 2, "77")),
                  process(21, 0, 2, plain(0, 2))});
  for (const char* name : {"mpirun-77", "11", "12", "50"})
    EXPECT_EQ(find_other_job(jobs, name), &jobs[0]) << name;
  EXPECT_EQ(find_other_job(jobs, "21"), &jobs[1]);
  for (const char* name : {"", "mpirun", "40", "1"})
    EXPECT_EQ(find_other_job(jobs, name), nullptr) << name;
}

TEST(OtherJobs, AreEndedByWhatStartedThem) {
  const auto ended = [](const RankProcess& process) {
    return how_to_end(other_jobs({process})[0]);
  };
  EXPECT_EQ(ended(process(11, 0, 2, step(0, 2, "12"))), "scancel 12.0");
  EXPECT_EQ(ended(process(11, 0, 2, open_mpi(0, 2, "77"))), "Ctrl-C there, or kill 50");
  EXPECT_EQ(ended(process(11, 0, 2, plain(0, 2))), "kill 11") << "not the shell";
  const auto two =
      other_jobs({process(11, 0, 1, step(0, 1, "12")), process(12, 0, 1, step(0, 1, "12"))});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(how_to_end(two[0]), "kill 11") << "scancel would end both";
  EXPECT_EQ(how_to_end(two[1]), "kill 12");
  const Error error = error_of([&] {
    refuse_other_job(
        "lockstep stop", "slurm-12.0",
        [] { return std::vector{process(11, 0, 2, step(0, 2, "12"))}; }, {}, how_to_end);
  });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::string(error.what()),
            "lockstep stop: srun started job slurm-12.0, not lockstep run; scancel 12.0");
}

TEST(OtherJobs, WhereNobodyCanLookThereAreNone) {
  const auto blind = []() -> std::vector<RankProcess> {
    throw Error(ErrorCode::kUnavailable, "no /proc");
  };
  EXPECT_TRUE(other_jobs_here(blind, {}).empty());
}

TEST(JobTable, SaysWhoStartedWhat) {
  JobEntry own;
  own.run_id = "night";
  EXPECT_EQ(job_table({own}, 0, 0).find("LAUNCHER"), std::string::npos);
  RankProcess far = process(12, 3, 4, open_mpi(3, 4, "77"));
  far.stopped = true;
  const auto others = other_jobs({far});
  const std::string table = job_table({own}, 15, 0, others);
  EXPECT_NE(table.find("RUN        PID  LAUNCHER  HOST"), std::string::npos) << table;
  EXPECT_NE(table.find("\nnight      0    lockstep  0 of 1"), std::string::npos) << table;
  EXPECT_NE(table.find("\nmpirun-77  12   mpirun    0 of 1  3 of 4"), std::string::npos) << table;
  EXPECT_NE(table.find("  3 s "), std::string::npos) << table;
  EXPECT_NE(table.find("  stopped  worker --fast\n"), std::string::npos) << table;
  JobEntry past = own;
  past.run_id = "past";
  past.over = true;
  const std::string all = job_table({own, past}, 15, 0, others);
  EXPECT_LT(all.find("\nmpirun-77"), all.find("\npast")) << "what runs comes first: " << all;
  const std::string json = jobs_as_json({own, past}, 15, others);
  EXPECT_LT(json.find("\"mpirun-77\""), json.find("\"past\"")) << json;
  for (const char* part : {"\"launcher\": \"lockstep\"", "\"launcher\": \"mpirun\"",
                           "\"run_id\": \"mpirun-77\"", "\"world_size\": 4"})
    EXPECT_NE(json.find(part), std::string::npos) << part << json;
}

TEST(JobTable, ShowsTheStepsOfRanksWithoutAgent) {
  std::vector<RankProcess> ranks = {process(11, 0, 2, open_mpi(0, 2, "77")),
                                    process(12, 1, 2, open_mpi(1, 2, "77")),
                                    process(21, 0, 2, open_mpi(0, 2, "78"))};
  ranks[1].steps = RankSteps{.mark = kStepped, .step = 4, .total = 10, .loss = 2, .note = "slow"};
  ranks[2].steps = RankSteps{.mark = kExpectsSteps};
  auto jobs = other_jobs_here([&] { return ranks; }, {});
  ASSERT_EQ(jobs.size(), 2U);
  ASSERT_TRUE(jobs[0].progress);
  EXPECT_EQ(jobs[0].progress->step, 4);
  EXPECT_FALSE(jobs[1].progress);
  jobs[0].progress->note = "slow";  // its step was long ago
  const std::string table = job_table({}, 30, 0, jobs);
  EXPECT_NE(table.find("  STEP       LOSS  NOTE  COMMAND\n"), std::string::npos) << table;
  EXPECT_NE(table.find("  4/10 40 %  2     slow  worker --fast\n"), std::string::npos) << table;
  const std::string json = jobs_as_json({}, 30, jobs);
  EXPECT_NE(json.find("\"total_steps\": 10"), std::string::npos) << json;
  EXPECT_EQ(json.find("\"step\""), json.rfind("\"step\"")) << json;
  for (RankProcess& rank : jobs[0].ranks) rank.stopped = true;
  EXPECT_NE(job_table({}, 30, 0, jobs).find("  stopped  worker"), std::string::npos);
}

TEST(JobTable, ShowsNothingThatATerminalWouldObey) {
  const Environment environment = with(plain(0, 1), {{"TORCHELASTIC_RUN_ID", "a\x1b[2J"}});
  RankProcess rank = process(12, 0, 1, environment);
  rank.command = {"worker", "a\nb\x1b[31m"};
  const std::string table = job_table({}, 15, 0, other_jobs({rank}));
  EXPECT_NE(table.find("\na?[2J  "), std::string::npos) << table;
  EXPECT_NE(table.find("worker 'a b?[31m'\n"), std::string::npos) << table;
}

TEST(RankProcess, IsWhatProcSays) {
  const auto own = read_rank_process(::getpid(), 1, 2);
  ASSERT_TRUE(own);
  if (::getppid() > 1) {  // the first process is no launcher
    ASSERT_FALSE(own->ancestors.empty());
    EXPECT_EQ(own->ancestors.front(), ::getppid());
  }
  EXPECT_EQ(own->session, ::getsid(0));
  EXPECT_FALSE(own->stopped);
  EXPECT_NE(own->program.find("launch_test"), std::string::npos) << own->program;
  EXPECT_EQ(own->environment.contains("PATH"), this_environment().contains("PATH"));
  EXPECT_FALSE(own->command.empty());
  const double now = static_cast<double>(::time(nullptr));
  EXPECT_LT(own->began, now + 2);
  EXPECT_GT(own->began, now - 3600);
  EXPECT_FALSE(read_rank_process(0, 0, 1));
  EXPECT_FALSE(read_rank_process(1 << 30, 0, 1));
}

}  // namespace
}  // namespace lockstep
