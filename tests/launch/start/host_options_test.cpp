// Options of lockstep run that count all ranks of a job or name its hosts.

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/launch/job/run_options.h"
#include "lockstep/launch/start/host_slots.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

RunOptions parsed(const Words& words, const Environment& environment = {}) {
  return parse_run_options(words, environment, [] { return HostResources{8, 0}; });
}

std::string refusal(const Words& words) {
  try {
    parsed(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HostOptions, RanksOfTheWholeJob) {
  for (const Words& words : {Words{"-n", "4", "p"}, Words{"-np", "4", "p"}, Words{"-n4", "p"},
                             Words{"--worker_num=4", "p"}}) {
    EXPECT_EQ(parsed(words).nproc_per_node, 4);
    EXPECT_EQ(parsed(words).num_nodes, 1);
  }
  const auto msrun = parsed({"--worker_num=8", "--local_worker_num=4", "--master_addr=a",
                             "--master_port=1", "--node_rank=1", "--join=True", "p"});
  EXPECT_EQ(msrun.nproc_per_node, 4);
  EXPECT_EQ(msrun.num_nodes, 2);
  EXPECT_TRUE(says(refusal({"-n", "5", "--nproc_per_node", "2", "p"}), "-n 5 is not a multiple"));
  EXPECT_TRUE(says(refusal({"--join=False", "-n", "1", "p"}), "waits for its ranks"));
}

TEST(HostOptions, HostsSayWhichNodesThereAre) {
  EXPECT_EQ(parsed({"-H", "a:2,b", "p"}).hosts, "a:2,b");
  EXPECT_EQ(parsed({"-hostfile", "f", "p"}).host_file, "f");
  EXPECT_TRUE(says(refusal({"-H", "a", "--hostfile", "f", "p"}), "give one"));
  EXPECT_TRUE(says(refusal({"-H", "a", "--nnodes", "2", "p"}), "leave --nnodes away"));
  EXPECT_TRUE(says(refusal({"-H", "a", "-x", "=v", "p"}), "'=v' is neither NAME nor NAME=VALUE"));
  EXPECT_TRUE(says(refusal({"-hosts", "a,b", "p"}), "it is --host H:N,H:N here"));
  EXPECT_TRUE(says(refusal({"-ppn", "2", "p"}), "--nproc_per_node N, or stand behind it"));
}

TEST(HostOptions, ExportedVariablesAreGivenOrTheEnvironments) {
  const RunOptions options = parsed({"-x", "A=1=2", "-x", "B", "p"});
  using Variables = std::map<std::string, std::string>;
  EXPECT_EQ(exported_variables(options, {{"A", "x"}, {"B", "2"}, {"C", "3"}}),
            (Variables{{"A", "1=2"}, {"B", "2"}}));
  // Variables that choose kernels are always exported: otherwise ranks on other hosts compute other
  // bits.
  EXPECT_EQ(exported_variables(parsed({"p"}), {{"OPENBLAS_CORETYPE", "HASWELL"},
                                               {"ATEN_CPU_CAPABILITY", "avx2"},
                                               {"DNNL_MAX_CPU_ISA", "AVX2"},
                                               {"HOME", "/"}}),
            (Variables{{"OPENBLAS_CORETYPE", "HASWELL"},
                       {"ATEN_CPU_CAPABILITY", "avx2"},
                       {"DNNL_MAX_CPU_ISA", "AVX2"}}));
  try {
    exported_variables(options, {});
    ADD_FAILURE() << "B is not set";
  } catch (const Error& error) {
    EXPECT_TRUE(says(error.what(), "-x B: it is not set here"));
  }
}

TEST(HostOptions, SshAsksNothingAndKeepsAConnectionWithoutOutput) {
  EXPECT_EQ(remote_words(parsed({"-H", "a,b", "p"}).rsh, "a", "x"),
            (Words{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                   "ServerAliveInterval=15", "-o", "ServerAliveCountMax=8", "a", "x"}));
}

TEST(HostOptions, Msruns) {
  EXPECT_TRUE(
      parsed({"--bind_core=False", "--tail_worker_log=-1", "p"}).local_ranks_filter.empty());
  EXPECT_EQ(parsed({"-n", "2", "--tail_worker_log", "1", "p"}).local_ranks_filter,
            std::set<int>{1});
  EXPECT_TRUE(
      says(refusal({"--bind_core={\"device0\":[\"0-1\"]}", "p"}), "neither True nor False"));
  EXPECT_EQ(parsed({"--bind_core=True", "p"}).core_binding, CoreBinding::kExclusive);
  EXPECT_TRUE(says(refusal({"--worker_log_name=a", "p"}), "--worker_log_name is not supported"));
  EXPECT_TRUE(says(refusal({"--rank_table_file", "f", "p"}), "RANK_TABLE_FILE and RANK_ID set"));
}

TEST(HostOptions, AgentsGetWhatIsNotTheStarters) {
  const Words words = {"-n", "3",  "-H", "a:2,b",          "-x", "A=1",         "-x", "B",  "--rsh",
                       "r",  "-t", "3",  "--max_restarts", "2",  "--no_python", "p",  "-n", "7"};
  EXPECT_EQ(
      words_for_agent(words, {{"PET_NPROC_PER_NODE", "2"}, {"PET_ROLE", "w x"}}),
      (Words{"--max_restarts=2", "--tee=3", "--no_python", "--role=w x", "--", "p", "-n", "7"}));
  EXPECT_EQ(parsed(words).exported, (Words{"A=1", "B"}));
}

}  // namespace
}  // namespace lockstep
