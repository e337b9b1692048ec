// Every way to start a process, by the variables that it then finds.
#include <gtest/gtest.h>

#include "lockstep/base/literals.h"
#include "lockstep/world/detect/decision.h"
#include "lockstep/world/torch_store.h"
#include "tests/world/detect/environments.h"

namespace lockstep {
namespace {

struct Started {
  const char* how;
  std::string variables;  ///< "A=1 B=2"
  const char* tuple;      ///< "LAUNCHER: describe(identity), at MASTER"
};

std::string outcome(const std::string& variables,
                    const std::map<std::string, std::string>& files = {}) {
  const Decision decision = decide(inputs_of(variables, files));
  if (!decision.problem.empty()) return decision.problem;
  const Identity& id = decision.identity;
  std::string text = id.launcher + ": " + describe(id);
  if (id.bootstrap == BootstrapMethod::kExchange)
    for (const Channel channel : id.channels) text += ", by " + to_string(channel);
  else if (!id.master.host.empty())
    text += ", at " + to_string(id.master);
  return text;
}

void expect_outcomes(const std::vector<Started>& cases,
                     const std::map<std::string, std::string>& files = {}) {
  for (const Started& c : cases) EXPECT_EQ(outcome(c.variables, files), c.tuple) << c.how;
}

/// Four tasks on gpu01 and gpu02, started by srun: this is rank 3.
const char* const kStep =
    "SLURM_JOB_ID=8 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_NTASKS=4 "
    "SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NODELIST=gpu[01-02] SLURM_STEP_TASKS_PER_NODE=2(x2) "
    "SLURM_GTIDS=2,3 SLURM_LAUNCH_NODE_IPADDR=10.9.9.9 SLURM_JOB_NODELIST=gpu[7,01-02] ";
const char* const kBatch =
    "SLURM_JOB_ID=8 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NTASKS=4 "
    "SLURM_GTIDS=0 SLURM_JOB_NODELIST=gpu[01-02] SLURM_TASKS_PER_NODE=2(x2) ";
const char* const kSecret = "LOCKSTEP_SECRET=0123456789abcdef ";
const char* const kMpirun =
    "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=3 "
    "OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_NODE_RANK=5 ";
const char* const kMpirunTwoHosts =
    "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 "
    "OMPI_COMM_WORLD_LOCAL_SIZE=2 ";
const char* const kJsrun = "JSM_NAMESPACE_RANK=3 JSM_NAMESPACE_SIZE=4 JSM_NAMESPACE_LOCAL_RANK=1 ";
const char* const kTorchrun =
    "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 GROUP_WORLD_SIZE=2 "
    "MASTER_ADDR=gpu01 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x TORCHELASTIC_RESTART_COUNT=0 ";

TEST(LauncherProbes, OneThatIsNamedIsTheOnlyOneThatIsRead) {
  auto inputs =
      inputs_of("PMIX_RANK=1 PMIX_NAMESPACE=x RANK=0 WORLD_SIZE=1 LOCKSTEP_LAUNCHER=torch");
  inputs.ask_pmix = []() -> PmixJob { throw std::logic_error("nobody was to ask"); };
  const Decision decision = decide(inputs);
  EXPECT_EQ(decision.problem, "");
  EXPECT_EQ(decision.identity.launcher, "torch");
  EXPECT_EQ(decision.results.at(1).passed_over, "not asked: LOCKSTEP_LAUNCHER names another");
}

// A process that has used PMI itself cannot call MPI_Init any more.
TEST(LauncherProbes, AFolderThatIsNamedComesBeforePmi) {
  const auto text = outcome(
      "PMI_RANK=1 PMI_SIZE=2 PMI_FD=5 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 "
      "LOCKSTEP_RENDEZVOUS_DIR=/tmp");
  EXPECT_NE(text.find("by LOCKSTEP_RENDEZVOUS_DIR, by PMI"), std::string::npos) << text;
}

// Plain srun of Slurm has no other channel for a secret.
TEST(LauncherProbes, WhereMungeIsNoSecretIsNeeded) {
  const auto channels = [](const std::string& variables) {
    auto inputs = inputs_of(variables);
    inputs.has_munge = [] { return true; };
    const Decision decision = decide(inputs);
    EXPECT_EQ(decision.problem, "") << variables;
    std::string text;
    for (const Channel channel : decision.identity.channels) text += " " + to_string(channel);
    return text;
  };
  EXPECT_EQ(channels(kStep), " munge");
  EXPECT_EQ(channels(kTorchrun), " munge");
  EXPECT_EQ(channels(kStep + std::string("LOCKSTEP_SECRET=s")), "");
  EXPECT_EQ(channels(kStep + std::string("LOCKSTEP_INSECURE=1")), "");
  EXPECT_EQ(channels(kStep + std::string("LOCKSTEP_RENDEZVOUS_DIR=/tmp")),
            " LOCKSTEP_RENDEZVOUS_DIR");
}

TEST(LauncherProbes, TellTheRankOfAStep) {
  const std::string secret = kSecret;
  expect_outcomes({
      {"srun", secret + kStep, "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:0"},
      {"srun -m cyclic", secret + kStep + "SLURM_DISTRIBUTION=cyclic SLURM_GTIDS=1,3",
       "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:0"},
      {"srun, uneven nodes",
       secret + kStep +
           "SLURM_STEP_TASKS_PER_NODE=2(x2),1 SLURM_STEP_NUM_TASKS=5 SLURM_PROCID=4 "
           "SLURM_GTIDS=4 SLURM_NODEID=2 SLURM_LOCALID=0 SLURM_STEP_NODELIST=gpu[01-02,7]",
       "slurm: rank 4 of 5, local rank 0 of 1, host 2 of 3, at gpu01:0"},
      {"a sub-step of a job on more nodes",
       secret + kStep +
           "SLURM_STEP_ID=3 SLURM_STEP_NODELIST=gpu02 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 "
           "SLURM_STEP_TASKS_PER_NODE=2 SLURM_NODEID=0 SLURM_GTIDS=0,1 SLURM_NNODES=1",
       "slurm: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:0"},
      {"a heterogeneous step",
       secret + kStep +
           "SLURM_HET_SIZE=2 SLURM_NTASKS=3 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=2 SLURM_NODEID=2 "
           "SLURM_LOCALID=0 SLURM_GTIDS=2 SLURM_STEP_NODELIST=gpu[01-02],big1 "
           "SLURM_STEP_TASKS_PER_NODE=1",
       "slurm: rank 2 of 3, local rank 0 of 1, host 2 of 3, at gpu01:0"},
      {"srun with MASTER_ADDR", secret + kStep + "MASTER_ADDR=10.0.0.7 MASTER_PORT=4000",
       "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2, at 10.0.0.7:4000"},
      {"srun --mpi=pmi2", secret + kStep + "PMI_RANK=3 PMI_SIZE=4 PMI_JOBID=8.0",
       "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:0"},
      {"srun that knows no secret", std::string(kStep) + "LOCKSTEP_INSECURE=1",
       "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:0"},
      {"srun in the shell of srun --pty", secret + kStep + "SLURM_PTY_PORT=32825 SLURM_TASK_PID=98",
       "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:0"},
  });
}

TEST(LauncherProbes, FindNoRankWhereNoneIsGiven) {
  expect_outcomes({
      {"nothing", "PATH=/bin", "none: rank 0 of 1, local rank 0 of 1, host 0 of 1"},
      {"sbatch without srun", kBatch, "none: rank 0 of 1, local rank 0 of 1, host 0 of 1"},
      {"the shell of salloc", "SLURM_JOB_ID=8 SLURM_JOB_NODELIST=gpu[01-02] SLURM_NNODES=2",
       "none: rank 0 of 1, local rank 0 of 1, host 0 of 1"},
      {"typed into the shell of srun --pty",
       std::string(kStep) + "SLURM_PTY_PORT=32825 SLURM_TASK_PID=36 PMI_RANK=3 PMI_SIZE=4",
       "none: rank 0 of 1, local rank 0 of 1, host 0 of 1"},
  });
}

TEST(LauncherProbes, TellTheRankOfTorchsNamesWithinAStep) {
  const std::string secret = kSecret;
  expect_outcomes({
      {"an agent a node by srun", secret + kStep + kTorchrun,
       "torch: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:29500"},
      {"an agent of another rank than its step's",
       secret + kTorchrun + kStep + "SLURM_PROCID=0 SLURM_NODEID=0 SLURM_GTIDS=0,1 SLURM_LOCALID=0",
       "torch: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:29500"},
      {"a script that sets RANK from Slurm",
       secret + kStep + "RANK=3 WORLD_SIZE=4 MASTER_ADDR=gpu01 MASTER_PORT=29500",
       "torch: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:29500"},
      {"one task of srun that starts a loop",
       std::string(kStep) + "SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 "
                            "SLURM_STEP_NODELIST=gpu01 SLURM_STEP_TASKS_PER_NODE=1 SLURM_GTIDS=0 "
                            "RANK=1 WORLD_SIZE=2 "
                            "MASTER_ADDR=127.0.0.1 MASTER_PORT=29500",
       "torch: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:29500"},
      {"a source named", secret + kStep + "RANK=0 WORLD_SIZE=1 LOCKSTEP_LAUNCHER=slurm",
       "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:0"},
      {"no source named", std::string(kStep) + "LOCKSTEP_LAUNCHER=none",
       "none: rank 0 of 1, local rank 0 of 1, host 0 of 1"},
  });
}

TEST(LauncherProbes, TellTheRankOfMpi) {
  const std::string secret = kSecret;
  expect_outcomes({
      {"mpirun", kMpirun, "openmpi: rank 3 of 4, local rank 3 of 4, host 0 of 1, at 127.0.0.1:0"},
      {"mpirun in sbatch", std::string(kBatch) + kMpirun,
       "openmpi: rank 3 of 4, local rank 3 of 4, host 0 of 1, at 127.0.0.1:0"},
      {"mpirun's daemon by srun",
       std::string(kMpirun) + kStep +
           "SLURM_PROCID=0 SLURM_GTIDS=0 "
           "SLURM_STEP_NUM_TASKS=1 SLURM_STEP_TASKS_PER_NODE=1 SLURM_STEP_NODELIST=gpu02 "
           "SLURM_NODEID=0 SLURM_LOCALID=0",
       "openmpi: rank 3 of 4, local rank 3 of 4, host 0 of 1, at 127.0.0.1:0"},
      {"mpirun over hosts", secret + kMpirunTwoHosts + "MASTER_ADDR=10.0.0.1",
       "openmpi: rank 3 of 4, local rank 1 of 2, host ? of ?, at 10.0.0.1:0"},
      {"mpirun with several programs",
       std::string(kMpirun) + "OMPI_NUM_APP_CTX=2 OMPI_FIRST_RANKS=0",
       "openmpi: rank 3 of 4, local rank 3 of 4, host 0 of 1, at 127.0.0.1:0"},
      {"torchrun a node by mpirun",
       secret + kTorchrun +
           "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "
           "OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1",
       "torch: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:29500"},
      {"hydra",
       "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 MASTER_ADDR=127.0.0.1 "
       "MASTER_PORT=4000",
       "mpich: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:4000"},
      {"hydra over hosts, in a batch job",
       secret + kBatch +
           "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1 "
           "MASTER_ADDR=gpu01 MASTER_PORT=4000",
       "mpich: rank 1 of 2, local rank 0 of 1, host ? of ?, at gpu01:4000"},
      {"mpirun_rsh of MVAPICH2",
       "MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_LOCAL_RANK=1 "
       "MV2_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=4000",
       "mpich: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:4000"},
  });
}

TEST(LauncherProbes, TellTheRankOfTorchsNames) {
  const std::string secret = kSecret;
  expect_outcomes({
      {"a shell loop", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500",
       "torch: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:29500"},
      {"a pod a rank", secret + "RANK=1 WORLD_SIZE=2 MASTER_ADDR=job-master-0 MASTER_PORT=23456",
       "torch: rank 1 of 2, local rank ? of ?, host ? of ?, at job-master-0:23456"},
      {"a folder that all share, and no address",
       "RANK=1 WORLD_SIZE=2 LOCKSTEP_RENDEZVOUS_DIR=/shared",
       "torch: rank 1 of 2, local rank ? of ?, host ? of ?, by LOCKSTEP_RENDEZVOUS_DIR"},
      {"torchrun alone, by its host's name",
       "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 GROUP_WORLD_SIZE=1 "
       "MASTER_ADDR=myhost MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x",
       "torch: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:29500"},
  });
}

/// The environment of every task of a step that runs the usual `export RANK=$SLURM_PROCID ...`.
std::vector<std::string> tasks_with_torchs_names(bool of_slurm) {
  std::vector<std::string> tasks;
  for (int rank = 0; rank < 4; ++rank) {
    const auto n = [](int number) { return std::to_string(number); };
    tasks.push_back(kSecret + ("RANK=" + n(rank)) + " LOCAL_RANK=" + n(rank % 2) +
                    " WORLD_SIZE=4 MASTER_ADDR=gpu01 MASTER_PORT=25900 ");
    if (!of_slurm) continue;
    tasks.back() += std::string(kStep) + "SLURM_PROCID=" + n(rank) +
                    " SLURM_LOCALID=" + n(rank % 2) + " SLURM_NODEID=" + n(rank / 2) +
                    " SLURM_GTIDS=" + n(rank / 2 * 2) + "," + n(rank / 2 * 2 + 1);
  }
  return tasks;
}

TEST(LauncherProbes, EveryTaskThatSetsTorchsNamesItselfDecidesAlike) {
  const auto of_slurm = tasks_with_torchs_names(true);
  const auto elsewhere = tasks_with_torchs_names(false);
  for (int rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE(rank);
    const auto i = static_cast<size_t>(rank);
    const auto who =
        "torch: rank " + std::to_string(rank) + " of 4, local rank " + std::to_string(rank % 2);
    EXPECT_EQ(outcome(of_slurm[i]),
              who + " of 2, host " + std::to_string(rank / 2) + " of 2, at gpu01:25900");
    EXPECT_EQ(outcome(elsewhere[i]), who + " of ?, host ? of ?, at gpu01:25900");
    EXPECT_EQ(store_secret(decide(inputs_of(of_slurm[i])).identity),
              store_secret(decide(inputs_of(of_slurm[0])).identity));
    EXPECT_TRUE(decide(inputs_of(of_slurm[i])).warnings.empty());
  }
}

TEST(LauncherProbes, SayWhatIsWrong) {
  const std::string secret = kSecret;
  const Started cases[] = {
      {"no secret between hosts", kStep, "set LOCKSTEP_SECRET to the same text"},
      {"a rank left from an outer job",
       secret + kStep + "RANK=0 WORLD_SIZE=2 MASTER_ADDR=gpu01 MASTER_PORT=29500",
       "two launchers set this process's environment: torch gives rank 0 of 2, local rank ? of ?, "
       "host ? of ? (RANK, WORLD_SIZE, LOCAL_RANK); slurm gives rank 3 of 4, local rank 1 of 2, "
       "host 1 of 2"},
      {"mpirun below a worker of torchrun",
       std::string(kMpirun) +
           "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 GROUP_WORLD_SIZE=1 "
           "MASTER_ADDR=localhost MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x",
       "openmpi gives rank 3 of 4"},
      {"a bad list of hosts", secret + kStep + "SLURM_STEP_NODELIST=gpu[01-", "'[' without ']'"},
      {"counts that differ", secret + kStep + "SLURM_GTIDS=1,2,3", "SLURM_STEP_TASKS_PER_NODE"},
      {"a rank out of range", secret + kStep + "SLURM_PROCID=4",
       "SLURM_PROCID=4 must be below SLURM_STEP_NUM_TASKS=4"},
      {"rank 0 not on the first node",
       secret + kStep + "SLURM_PROCID=0 SLURM_NODEID=1 SLURM_LOCALID=0 SLURM_GTIDS=0,1",
       "rank 0 runs on node 1"},
      {"mpirun over hosts, no address", secret + kMpirunTwoHosts, "MASTER_ADDR"},
      {"half of Open MPI's variables", "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE is not set"},
      {"no suggestion of unrelated names", "WORLD_SIZE=2 LANG=C",
       "a rank needs RANK and WORLD_SIZE"},
      {"WORLD_SIZE alone", "WORLD_SIZE=2",
       "RANK is not set, but WORLD_SIZE is; a rank needs RANK and WORLD_SIZE"},
      {"RANK alone", "RANK=1", "WORLD_SIZE is not set, but RANK is; a rank needs"},
      {"no WORLD_SIZE", "RANK=1 LOCAL_RANK=1",
       "WORLD_SIZE is not set, but RANK and LOCAL_RANK are; a rank needs"},
      {"a rank of Ascend's without its number", "RANK_SIZE=2",
       "RANK_ID is not set, but RANK_SIZE is"},
      {"a pod without its port",
       secret + "PET_NNODES=2 PET_NPROC_PER_NODE=1 PET_NODE_RANK=1 PET_MASTER_ADDR=j",
       "PET_MASTER_PORT is not set, but other PET_ variables are"},
      {"a source named that is not here", "LOCKSTEP_LAUNCHER=slurm", "was not started by it"},
      {"a source misspelt", "LOCKSTEP_LAUNCHER=slrum", "did you mean 'slurm'?"},
      {"not a choice", secret + kStep + "LOCKSTEP_SECRET= LOCKSTEP_INSECURE=yes", "not 0 or 1"},
      {"a level of lines that there is not", "LOCKSTEP_LOG_LEVEL=inf",
       "environment variable LOCKSTEP_LOG_LEVEL: 'inf' is not one of debug, info, warn, error, did "
       "you mean 'info'?"},
      {"TLS with a key that all know", std::string(kStep) + "LOCKSTEP_INSECURE=1 LOCKSTEP_TLS=1",
       "LOCKSTEP_TLS=1 needs a secret"},
  };
  for (const Started& c : cases) {
    const auto said = outcome(c.variables);
    EXPECT_NE(said.find(c.tuple), std::string::npos) << c.how << ": " << said;
    EXPECT_EQ(said.find("mean 'LANG'"), std::string::npos);
    EXPECT_EQ(said.find("mean 'PET_MASTER_ADDR'"), std::string::npos) << "that is there by itself";
  }
}

TEST(LauncherProbes, MeetByWhatTheLauncherOffersWhereNoAddressOrSecretIsKnown) {
  const std::string two_hosts = kMpirunTwoHosts;
  const std::string pmix = "PMIX_RANK=3 PMIX_NAMESPACE=7 ";
  const std::string pmi = "PMI_RANK=3 PMI_SIZE=4 PMI_FD=9 PMI_JOBID=8.0 ";
  const std::string folder = "LOCKSTEP_RENDEZVOUS_DIR=/shared ";
  const std::string openmpi = "openmpi: rank 3 of 4, local rank 1 of 2, host ? of ?";
  const std::string slurm = "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2";
  const std::pair<std::string, std::string> cases[] = {
      {two_hosts + pmix, openmpi + ", by PMIx"},
      {two_hosts + pmix + folder, openmpi + ", by PMIx, by LOCKSTEP_RENDEZVOUS_DIR"},
      {two_hosts + pmix + "MASTER_ADDR=10.0.0.1 LOCKSTEP_SECRET=s", openmpi + ", at 10.0.0.1:0"},
      {two_hosts + pmix + "MASTER_ADDR=10.0.0.1", openmpi + ", by PMIx"},
      {std::string(kStep) + pmi, slurm + ", by PMI"},
      {std::string(kStep) + pmix, slurm + ", by PMIx"},
      {std::string(kStep) + folder, slurm + ", by LOCKSTEP_RENDEZVOUS_DIR"},
      {std::string(kStep) + pmi + kSecret, slurm + ", at gpu01:0"},
      {std::string(kStep) + pmi + kSecret + "SLURM_DISTRIBUTION=arbitrary", slurm + ", by PMI"},
      {"PMI_RANK=1 PMI_SIZE=2 PMI_FD=9 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2",
       "mpich: rank 1 of 2, local rank 1 of 2, host 0 of 1, by PMI"},
  };
  for (const auto& [variables, tuple] : cases) EXPECT_EQ(outcome(variables), tuple) << variables;
  // The process manager's rank is the agent's here.
  EXPECT_NE(outcome(kTorchrun + pmix).find("LOCKSTEP_SECRET"), std::string::npos);
  EXPECT_NE(outcome(two_hosts + "PMIX_RANK=0 PMIX_NAMESPACE=7").find("PMIx"), std::string::npos);
}

const std::map<std::string, std::string> kFiles = {
    {"/hosts", "login1\nc01\nc01\nc02\nc02\n"},
    {"/one_host", "login1\nc01\nc01\n"},
    {"/no_hosts", "\n"},
    {"/table", R"({"version": "1.0", "server_count": "2", "status": "completed", "server_list": [
       {"server_id": "10.0.0.2", "device": [{"device_id": "4", "device_ip": "1.1.1.1", "rank_id": "0"},
                                            {"device_id": "5", "device_ip": "1.1.1.2", "rank_id": "1"}]},
       {"server_id": "10.0.0.1", "device": [{"device_id": "6", "device_ip": "1.1.1.3", "rank_id": "2"},
                                            {"device_id": "7", "device_ip": "1.1.1.4", "rank_id": "3"}]}]})"},
    {"/one_server",
     R"({"version": "1.0", "server_count": "1", "status": "completed", "server_list": [
       {"server_id": "10.0.0.2", "device": [{"device_id": "4", "device_ip": "1.1.1.1", "rank_id": "0"},
                                            {"device_id": "5", "device_ip": "1.1.1.2", "rank_id": "1"}]}]})"},
    {"/unfinished",
     R"({"version": "1.0", "server_count": "1", "status": "initializing", "server_list": [
       {"server_id": "10.0.0.2", "device": [{"device_id": "4", "device_ip": "1.1.1.1", "rank_id": "0"}]}]})"},
    {"/gap", R"({"version": "1.0", "server_count": "1", "status": "completed", "server_list": [
       {"server_id": "10.0.0.2", "device": [{"device_id": "4", "device_ip": "1.1.1.1", "rank_id": "1"}]}]})"},
};

TEST(LauncherProbes, TellTheRankWithTheHelpOfFiles) {
  const std::string secret = kSecret;
  expect_outcomes(
      {
          {"jsrun", secret + kJsrun + "LSB_DJOB_RANKFILE=/hosts LSB_JOBID=5",
           "lsf: rank 3 of 4, local rank 1 of ?, host ? of ?, at c01:0"},
          {"jsrun on one host",
           "JSM_NAMESPACE_RANK=1 JSM_NAMESPACE_SIZE=2 JSM_NAMESPACE_LOCAL_RANK=1 "
           "LSB_DJOB_RANKFILE=/one_host",
           "lsf: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:0"},
          {"prterun", secret + "PMIX_RANK=3 PMIX_NAMESPACE=7",
           "pmix: rank 3 of 4, local rank 1 of 2, host ? of ?, by PMIx"},
          {"a pod with one process",
           secret + "PET_NNODES=2 PET_NPROC_PER_NODE=1 PET_NODE_RANK=1 PET_MASTER_ADDR=j-0.j "
                    "PET_MASTER_PORT=29400",
           "kubernetes: rank 1 of 2, local rank 0 of 1, host 1 of 2, at j-0.j:29400"},
          {"horovodrun",
           "HOROVOD_RANK=1 HOROVOD_SIZE=2 HOROVOD_LOCAL_RANK=1 HOROVOD_LOCAL_SIZE=2 "
           "HOROVOD_GLOO_RENDEZVOUS_PORT=1",
           "horovod: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:0"},
          {"a secret in a file", secret + "LOCKSTEP_SECRET= LOCKSTEP_SECRET_FILE=/hosts " + kStep,
           "slurm: rank 3 of 4, local rank 1 of 2, host 1 of 2, at gpu01:0"},
      },
      kFiles);
}

TEST(LauncherProbes, TellTheRankOfARankTable) {
  const std::string secret = kSecret;
  expect_outcomes(
      {
          {"a rank table of half of each host's devices",
           secret + "RANK_TABLE_FILE=/table RANK_ID=2 RANK_SIZE=4 DEVICE_ID=6 DEVICE_NUM=8",
           "ascend: rank 2 of 4, local rank 0 of 2, host 1 of 2, at 10.0.0.2:0"},
          {"a rank table alone", "RANK_TABLE_FILE=/one_server RANK_ID=1",
           "ascend: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:0"},
          {"a rank table, with a port", "RANK_TABLE_FILE=/one_server RANK_ID=1 MASTER_PORT=4000",
           "ascend: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:4000"},
          {"a loop without a table",
           "RANK_ID=1 RANK_SIZE=2 DEVICE_ID=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=4000",
           "ascend: rank 1 of 2, local rank ? of ?, host ? of ?, at 127.0.0.1:4000"},
          {"RANK_ID beside RANK",
           "RANK_ID=1 RANK_SIZE=2 RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=4000",
           "torch: rank 1 of 2, local rank 1 of 2, host 0 of 1, at 127.0.0.1:4000"},
      },
      kFiles);
  const auto partial = decide(inputs_of("RANK_TABLE_FILE=/one_server RANK_ID=1", kFiles));
  EXPECT_EQ(partial.identity.device, 5);
}

TEST(LauncherProbes, TellTheRankOfMindSpore) {
  expect_outcomes(
      {
          {"msrun",
           "MS_ROLE=MS_WORKER MS_WORKER_NUM=4 MS_NODE_ID=2 MS_SCHED_HOST=127.0.0.1 "
           "MS_SCHED_PORT=8118 RANK_ID=2 RANK_SIZE=4",
           "mindspore: rank 2 of 4, local rank ? of ?, host ? of ?, at 127.0.0.1:8118"},
          {"msrun's scheduler",
           "MS_ROLE=MS_SCHED MS_WORKER_NUM=4 MS_SCHED_HOST=10.0.0.1 MS_SCHED_PORT=8118",
           "mindspore: no rank: the scheduler of 4, at 10.0.0.1:8118"},
          {"MindSpore's scheduler, of unknown place", "MS_ROLE=MS_SCHED MS_WORKER_NUM=4",
           "environment variable MS_SCHED_HOST is not set, but MS_ROLE=MS_SCHED"},
          {"another role", "MS_ROLE=MS_PSERVER MS_WORKER_NUM=4",
           "MS_ROLE=MS_PSERVER: it is MS_WORKER for a rank, or MS_SCHED"},
      },
      kFiles);
}

TEST(LauncherProbes, SayWhatIsWrongWithARankTable) {
  expect_outcomes(
      {
          {"no file of a rank table", "RANK_TABLE_FILE=/none RANK_ID=1", "/none does not exist"},
          {"not all of a rank table", "RANK_TABLE_FILE=/one_server RANK_ID=1 RANK_SIZE=8",
           "environment: RANK_SIZE=8, but RANK_TABLE_FILE=/one_server has 2 ranks"},
          {"another device than the table's", "RANK_TABLE_FILE=/one_server RANK_ID=1 DEVICE_ID=4",
           "environment: DEVICE_ID=4, but RANK_TABLE_FILE=/one_server gives rank 1 device 5"},
          {"more than the table", "RANK_TABLE_FILE=/one_server RANK_ID=2",
           "environment: RANK_ID=2 must be below RANK_SIZE=2"},
      },
      kFiles);
  for (const char* table : {"/unfinished", "/gap"}) {
    const auto said = outcome(std::string("RANK_ID=0 RANK_TABLE_FILE=") + table, kFiles);
    EXPECT_NE(said.find("lockstep ranktable --check"), std::string::npos) << said;
  }
}

TEST(LauncherProbes, SayWhatIsWrongWithAHostOrPod) {
  expect_outcomes(
      {
          {"an empty list of hosts", std::string(kJsrun) + "LSB_DJOB_RANKFILE=/no_hosts",
           "LSB_DJOB_RANKFILE=/no_hosts names no host"},
          {"a pod with several processes", "PET_NNODES=2 PET_NODE_RANK=0",
           "PET_NPROC_PER_NODE is not 1, so this pod has several ranks: start the program with "
           "`lockstep run`"},
      },
      kFiles);
}

TEST(LauncherProbes, OfMindSporeHaveALimitForTheRanksToMeet) {
  const auto patience = [](const std::string& role, const std::string& limit) {
    const Decision decision = decide(inputs_of(
        "MS_ROLE=" + role +
        " MS_WORKER_NUM=2 MS_NODE_ID=1 MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=8118 " + limit));
    EXPECT_EQ(decision.problem, "");
    return decision.identity.patience;
  };
  for (const char* role : {"MS_WORKER", "MS_SCHED"}) {
    EXPECT_FALSE(patience(role, "")) << role;
    EXPECT_EQ(patience(role, "MS_TOPO_TIMEOUT=600").value_or(0s), 600s) << role;
    EXPECT_GT(patience(role, "MS_TOPO_TIMEOUT=-1").value_or(0s), 24h) << role;
  }
}

TEST(LauncherProbes, WhereMungeDoesNotAnswerIsSaidWithWhatElseWouldDo) {
  Inputs inputs = inputs_of(kStep);
  inputs.why_no_munge = [] { return "munged does not answer at /run/m.socket"; };
  const std::string said = decide(inputs).problem;
  EXPECT_NE(said.find("where munged runs on all hosts (munged does not answer at /run/m.socket; "
                      "LOCKSTEP_MUNGE_SOCKET sets its socket)"),
            std::string::npos)
      << said;
}

TEST(LauncherProbes, AHostThatIsUnknownIsNamedBeforeASecretIsAskedFor) {
  Inputs inputs = inputs_of("RANK=1 WORLD_SIZE=2 MASTER_ADDR=gpu99 MASTER_PORT=29500");
  inputs.knows_host = [](const std::string& host) { return host != "gpu99"; };
  const std::string said = decide(inputs).problem;
  EXPECT_EQ(said.find("host 'gpu99', where the ranks meet, is unknown here: check the name"), 0U)
      << said;
  EXPECT_NE(said.find("LOCKSTEP_SECRET"), std::string::npos) << "the next to be said: " << said;
  inputs.variables["MASTER_ADDR"] = "gpu01";
  EXPECT_EQ(decide(inputs).problem.find("ranks meet at gpu01, which is not"), 0U);
}

TEST(LauncherProbes, RanksOfAnAgentDoNotAskTheAgentsPmixServer) {
  Inputs inputs = inputs_of(std::string(kSecret) + kTorchrun + "PMIX_RANK=0 PMIX_NAMESPACE=7");
  bool asked = false;
  inputs.ask_pmix = [&] {
    asked = true;
    return PmixJob{2, 0, 1};
  };
  EXPECT_EQ(decide(inputs).identity.launcher, "torch");
  EXPECT_FALSE(asked);
}

TEST(LauncherProbes, WarnOfWhatTheyPassOver) {
  const auto warnings = [](const std::string& variables) {
    std::string text;
    for (const auto& warning : decide(inputs_of(variables)).warnings) text += warning + "\n";
    return text;
  };
  EXPECT_NE(warnings(kBatch).find("it runs alone"), std::string::npos);
  EXPECT_NE(warnings(std::string(kStep) + "SLURM_PTY_PORT=1 SLURM_TASK_PID=36").find("srun --pty"),
            std::string::npos);
  EXPECT_EQ(warnings("SLURM_JOB_ID=8 SLURM_NTASKS=1"), "");
  EXPECT_EQ(warnings(std::string(kBatch) + kMpirun), "");  // mpirun in a batch script
  // In a pod whose ranks torchrun started, PET_ variables are torchrun's.
  const std::string torchrun = std::string(kSecret) + kTorchrun;
  EXPECT_EQ(warnings(torchrun + "PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=2"), "");
  EXPECT_NE(warnings(std::string(kMpirun) + "RANK=1").find("passed over torch"), std::string::npos);
  EXPECT_NE(warnings(std::string(kStep) + "LOCKSTEP_INSECURE=1").find("without a secret"),
            std::string::npos);
  EXPECT_EQ(warnings(std::string(kSecret) + kStep), "");
  EXPECT_NE(warnings(std::string("LOCKSTEP_SECRET=a ") + kStep).find("the secret has 1 bytes"),
            std::string::npos);
  EXPECT_EQ(warnings("LOCKSTEP_SECRET=a RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=1"),
            "")
      << "it does not leave this host";
}

TEST(LauncherProbes, RanksOfOneHostNeedNoSecretWhereItsNameIsTheirMaster) {
  const std::string rank = "RANK=1 WORLD_SIZE=2 MASTER_PORT=29500 MASTER_ADDR=";
  EXPECT_EQ(outcome(rank + "this_host"),
            "torch: rank 1 of 2, local rank ? of ?, host ? of ?, at 127.0.0.1:29500");
  EXPECT_NE(decide(inputs_of(rank + "this_host")).warnings.at(0).find("only ranks of this host"),
            std::string::npos);
  EXPECT_NE(outcome(rank + "other_host").find("set LOCKSTEP_SECRET"), std::string::npos);
  EXPECT_NE(outcome(rank + "this_host LOCAL_WORLD_SIZE=1").find("set LOCKSTEP_SECRET"),
            std::string::npos)
      << "there are two nodes";
  EXPECT_EQ(outcome(rank + "this_host " + kSecret),
            "torch: rank 1 of 2, local rank ? of ?, host ? of ?, at this_host:29500");
}

TEST(LauncherProbes, JobsOfOneMachineMeetOnPortsOfTheirOwn) {
  const auto ports = [](const std::string& variables) {
    return store_ports(decide(inputs_of(variables)).identity);
  };
  const std::string step = std::string(kSecret) + kStep;
  EXPECT_EQ(ports(step).size(), 8U);
  EXPECT_EQ(ports(step), ports(step + "SLURM_PROCID=2 SLURM_LOCALID=0"));
  EXPECT_NE(ports(step), ports(step + "SLURM_STEP_ID=1"));
  EXPECT_NE(ports(step), ports(step + "SLURM_JOB_ID=10008"));
  EXPECT_NE(ports(step), ports(step + "SLURM_RESTART_COUNT=1"));
  EXPECT_NE(ports(std::string(kMpirun) + "PMIX_NAMESPACE=1"),
            ports(std::string(kMpirun) + "PMIX_NAMESPACE=2"));
}

}  // namespace
}  // namespace lockstep
