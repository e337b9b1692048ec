// Real launchers on this machine start a rank of ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using Words = std::vector<std::string>;

/// Open MPI refuses root, more ranks than cores, and ssh's unknown locales, unless it is
/// configured.
Words mpirun(int ranks, const Words& rest) {
  Words words = {"/usr/bin/mpirun.openmpi",
                 "--allow-run-as-root",
                 "--oversubscribe",
                 "--bind-to",
                 "none",
                 "-n",
                 std::to_string(ranks)};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

Words mpiexec(int ranks, const Words& rest) {
  Words words = {"/usr/bin/mpiexec.hydra", "-n", std::to_string(ranks)};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

/// The ranks' lines, in their order, without threads and secret.
std::vector<std::string> ranks_said(const Launched& run) {
  std::vector<std::string> said;
  for (const auto& line : lines_of(run.out()))
    if (line.starts_with("rank ")) said.push_back(line.substr(0, line.find(',')));
  std::sort(said.begin(), said.end());
  return said;
}

std::vector<std::string> expected(int ranks, const std::string& launcher) {
  std::vector<std::string> lines;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto place = std::to_string(rank) + "/" + std::to_string(ranks);
    lines.push_back("rank " + place + " local " + place + " node 0/1 by " + launcher +
                    " at 127.0.0.1");
  }
  return lines;
}

TEST(Launchers, MpirunOnOneHost) {
  Launched run(mpirun(4, {built_program("world_worker")}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(ranks_said(run), expected(4, "openmpi"));
}

TEST(Launchers, MpirunOfSeveralPrograms) {
  Launched run(
      mpirun(1, {built_program("world_worker"), ":", "-n", "2", built_program("world_worker")}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(ranks_said(run), expected(3, "openmpi"));
}

/// Ranks with different host ids meet through PMIx, and then have a secret.
TEST(Launchers, MpirunOverHostsMeetsThroughPmix) {
  const std::string script =
      "export OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1; "
      "test \"$OMPI_COMM_WORLD_RANK\" = 0 || export LOCKSTEP_HOST_ID=other$OMPI_COMM_WORLD_RANK; "
      "exec " +
      built_program("world_worker");
  Launched run(mpirun(3, {"/bin/sh", "-c", script}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  const auto said = ranks_said(run);
  ASSERT_EQ(said.size(), 3U) << run.err();
  EXPECT_TRUE(has(said[1], "rank 1/3 local 0/1 node 1/3 by openmpi at ")) << said[1];
  EXPECT_FALSE(has(said[1], "at 127.")) << said[1];
  EXPECT_TRUE(has(run.out(), "secret 64")) << run.out();
}

/// MPI also uses PMIx, which must not have been finalized by then.
TEST(Launchers, MpiCanBeUsedAfterMeetingThroughPmix) {
  const std::string script =
      "export OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1; "
      "export LOCKSTEP_HOST_ID=h$OMPI_COMM_WORLD_RANK OMPI_MCA_mpi_yield_when_idle=1; exec " +
      built_program("lockstep") +
      " bench collectives --backend mpi --op barrier --rounds 1 --seconds 0.01";
  Launched run(mpirun(2, {"/bin/sh", "-c", script}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "2 ranks, back end mpi")) << run.out() << run.err();
}

TEST(Launchers, HydraMeetsThroughPmi) {
  Launched run(mpiexec(3, {built_program("world_worker")}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(ranks_said(run), expected(3, "mpich"));
}

// The environment has no rank then; the program must not count as a single process.
TEST(Launchers, HydraTellsTheRankAtAPort) {
  const Words by_port = {"/usr/bin/mpiexec.hydra", "-pmi-port", "-n", "3"};
  Words words = by_port;
  words.push_back(built_program("world_worker"));
  Launched run(words);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(ranks_said(run), expected(3, "mpich"));
  words = by_port;
  words.insert(words.end(), {built_program("lockstep"), "env"});
  Launched env(words);
  EXPECT_EQ(env.wait(), 0) << env.err();
  for (const char* rank : {"0 of 3", "1 of 3", "2 of 3"})
    EXPECT_TRUE(has(env.out(), std::string("rank         ") + rank)) << env.out();
}

TEST(Launchers, HydrasJobsAtOneTimeDoNotMeetEachOther) {
  Launched first(mpiexec(2, {built_program("world_worker")}));
  Launched second(mpiexec(3, {built_program("world_worker")}));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(ranks_said(first), expected(2, "mpich"));
  EXPECT_EQ(ranks_said(second), expected(3, "mpich"));
}

TEST(Launchers, NoWayToMeetIsOneErrorThatSaysWhichThereAre) {
  const std::string script =
      "unset PMI_FD PMIX_RANK; export MPI_LOCALNRANKS=1; exec " + built_program("world_worker");
  Launched run(mpiexec(2, {"/bin/sh", "-c", script}));
  EXPECT_NE(run.wait(), 0);
  for (const char* way : {"MASTER_ADDR", "LOCKSTEP_RENDEZVOUS_DIR", "PMIx"})
    EXPECT_TRUE(has(run.err() + run.out(), way)) << run.err();
}

TEST(Launchers, EnvVerbShowsTheTupleAndRefusesWhereARankWould) {
  Launched run(mpirun(1, {built_program("lockstep"), "env"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  for (const char* part : {"openmpi", "0 of 1", "OMPI_COMM_WORLD_RANK=0", "chosen"})
    EXPECT_TRUE(has(run.out(), part)) << run.out();
  Launched bad({"env", "--json"}, {{"RANK", "3"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(bad.wait(), 2);
  EXPECT_TRUE(has(bad.out(), "RANK=3 must be below WORLD_SIZE=2")) << bad.out();
  Launched secret({"env"}, {{"LOCKSTEP_SECRET", "hush-hush"},
                            {"RANK", "0"},
                            {"WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "10.0.0.1"},
                            {"MASTER_PORT", "1"}});
  EXPECT_EQ(secret.wait(), 0);
  EXPECT_FALSE(has(secret.out(), "hush-hush")) << secret.out();
}

/// The lines of `lockstep ps` about waiting ranks, once both are there.
std::string listed(const Words& command) {
  const TempFolder folder;
  const std::map<std::string, std::string> list = {{"LOCKSTEP_JOBS_DIR", folder / "jobs"}};
  Launched run(command, list);
  EXPECT_TRUE(run.wait_for("holding", 2)) << run.err();
  Launched ps({"ps"}, list);
  EXPECT_EQ(ps.wait(), 0) << ps.err();
  const auto lines = lines_of(ps.out());
  EXPECT_EQ(lines.size(), 2U) << ps.out();
  return lines.back();
}

TEST(Launchers, PsSaysWhoStartedRanksAndTheirSteps) {
  const std::string of_mpirun = listed(mpirun(2, {built_program("group_holder"), "steps"}));
  EXPECT_TRUE(of_mpirun.starts_with("mpirun-")) << of_mpirun;
  EXPECT_TRUE(has(of_mpirun, "  mpirun    0 of 1  0-1 of 2  ")) << of_mpirun;
  const std::string of_hydra = listed(mpiexec(2, {built_program("group_holder"), "steps"}));
  EXPECT_TRUE(of_hydra.starts_with("mpiexec-")) << of_hydra;
  EXPECT_TRUE(has(of_hydra, "  mpiexec   0 of 1  0-1 of 2  ")) << of_hydra;
  for (const std::string& row : {of_mpirun, of_hydra})
    EXPECT_TRUE(has(row, "  812/5000 16 %  1.25  7:20  ")) << row;
}

}  // namespace
}  // namespace lockstep::testing
