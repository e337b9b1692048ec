#include "lockstep/launch/agent/run_options.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

RunOptions parse(const Words& words, const Environment& environment = {},
                 Machine machine = {8, 0}) {
  return parse_run_options(words, environment, machine);
}

std::string failure(const Words& words, const Environment& environment = {}) {
  try {
    parse(words, environment);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(RunOptions, DefaultsAreOneProcessOnOneNode) {
  const auto options = parse({"true"});
  EXPECT_EQ(options.nproc_per_node, 1);
  EXPECT_EQ(options.num_nodes, 1);
  EXPECT_EQ(options.master_port, 0);
  EXPECT_EQ(options.shutdown_timeout, std::chrono::seconds(30));
  EXPECT_FALSE(options.tee.any());
  EXPECT_EQ(options.command, Words{"true"});
}

TEST(RunOptions, BothSpellingsAndBothFormsOfAValue) {
  for (const Words& words :
       {Words{"--nproc_per_node", "4", "p"}, Words{"--nproc-per-node", "4", "p"},
        Words{"--nproc_per_node=4", "p"}, Words{"--nproc-per-node=4", "--", "p"}}) {
    EXPECT_EQ(parse(words).nproc_per_node, 4);
  }
  for (const Words& words :
       {Words{"-t", "0:3", "--log_dir", "d", "p"}, Words{"-t0:3", "--log_dir", "d", "p"},
        Words{"--tee", "0:3", "--log_dir=d", "p"}}) {
    EXPECT_TRUE(parse(words).tee.of(0).err);
  }
}

TEST(RunOptions, OptionsEndAtTheProgram) {
  const auto options = parse({"--nnodes", "1", "prog", "--nproc_per_node", "3", "--", "x"});
  EXPECT_EQ(options.nproc_per_node, 1);
  EXPECT_EQ(options.command, (Words{"prog", "--nproc_per_node", "3", "--", "x"}));
  EXPECT_EQ(parse({"--", "-odd-name"}).command, Words{"-odd-name"});
}

TEST(RunOptions, ProcessesPerMachine) {
  EXPECT_EQ(parse({"--nproc_per_node", "cpu", "p"}).nproc_per_node, 8);
  EXPECT_EQ(parse({"--nproc_per_node", "auto", "p"}).nproc_per_node, 8);
  EXPECT_EQ(parse({"--nproc_per_node", "auto", "p"}, {}, {8, 2}).nproc_per_node, 2);
  EXPECT_EQ(parse({"--nproc_per_node", "gpu", "p"}, {}, {8, 2}).nproc_per_node, 2);
}

TEST(RunOptions, VariablesAreDefaults) {
  const Environment environment = {{"PET_NPROC_PER_NODE", "3"},
                                   {"PET_STANDALONE", "1"},
                                   {"PET_NO_PYTHON", "0"},
                                   {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "5"}};
  const auto options = parse({"p"}, environment);
  EXPECT_EQ(options.nproc_per_node, 3);
  EXPECT_EQ(options.shutdown_timeout, std::chrono::seconds(5));
  EXPECT_EQ(parse({"--nproc_per_node", "2", "p"}, environment).nproc_per_node, 2);
  EXPECT_NE(failure({"p"}, {{"PET_NNODES", "many"}}).find("PET_NNODES"), std::string::npos);
  EXPECT_NE(failure({"p"}, {{"PET_STANDALONE", "yes"}}).find("PET_STANDALONE"), std::string::npos);
}

TEST(RunOptions, SeveralNodes) {
  const auto options = parse({"--nnodes", "2:2", "--node-rank", "1", "--master-addr", "h", "p"});
  EXPECT_EQ(options.num_nodes, 2);
  EXPECT_EQ(options.node_rank, 1);
  EXPECT_EQ(options.master_port, 29500);
  const auto endpoint = parse({"--nnodes", "2", "--rdzv_endpoint", "h:12", "p"});
  EXPECT_EQ(endpoint.master_addr, "h");
  EXPECT_EQ(endpoint.master_port, 12);
  EXPECT_EQ(parse({"--rdzv_conf", "timeout=2.5", "p"}).join_timeout,
            std::chrono::milliseconds(2500));
}

TEST(RunOptions, LogFolderAloneMeansTee) {
  EXPECT_TRUE(parse({"--log_dir", "d", "p"}).tee.of(7).out);
  EXPECT_FALSE(parse({"--log_dir", "d", "-r", "3", "p"}).tee.any());
  EXPECT_FALSE(parse({"--log_dir", "d", "-t", "0", "p"}).tee.any());
}

TEST(RunOptions, WhatTorchrunHasAndThisHasNotIsTakenOrRefusedNeverIgnored) {
  for (const Words& words :
       {Words{"--no-python", "p"}, Words{"--monitor_interval", "0.1", "p"},
        Words{"--rdzv_backend", "static", "p"}, Words{"--max_restarts", "0", "p"},
        Words{"--standalone", "p"}, Words{"--role", "trainer", "p"}}) {
    EXPECT_EQ(parse(words).command, Words{"p"});
  }
  for (const Words& words :
       {Words{"--rdzv_backend", "c10d", "p"}, Words{"--max_restarts", "1", "p"},
        Words{"--nnodes", "1:4", "p"}, Words{"-m", "p"}, Words{"--run-path", "p"},
        Words{"--start_method", "fork", "p"}, Words{"--numa_binding", "node", "p"},
        Words{"--virtual_local_rank", "p"}, Words{"--logs_specs", "x", "p"}}) {
    EXPECT_NE(failure(words).find("not supported"), std::string::npos) << words[0];
  }
}

struct BadWords {
  Words words;
  const char* said;
};

TEST(RunOptions, RefusalsNameTheOption) {
  const BadWords cases[] = {
      {{"--nproc_per_nod", "2", "p"}, "did you mean '--nproc_per_node'"},
      {{"--nproc", "2", "p"}, "did you mean '--nproc_per_node'"},
      {{"-x", "p"}, "unknown option -x"},
      {{"--nproc_per_node", "0", "p"}, "--nproc_per_node: '0' is not a whole number from 1"},
      {{"--nproc-per-node", "-1", "p"}, "--nproc-per-node: '-1'"},
      {{"--nproc_per_node", "two", "p"}, "neither a number"},
      {{"--nproc_per_node", "gpu", "p"}, "no GPU"},
      {{"--nnodes", "0", "p"}, "--nnodes: '0'"},
      {{"--nnodes", "1:2:3", "p"}, "--nnodes"},
      {{"--node_rank", "1", "p"}, "--node_rank 1 must be below --nnodes 1"},
      {{"--master_port", "65536", "p"}, "--master_port: '65536'"},
      {{"--shutdown_timeout", "-1", "p"}, "not a number of seconds"},
      {{"--shutdown_timeout", "soon", "p"}, "not a number of seconds"},
      {{"--tee", "3", "p"}, "--log_dir"},
      {{"-r", "4", "--log_dir", "d", "p"}, "-r (0 none"},
      {{"-r", "0:3,0:1", "--log_dir", "d", "p"}, "local rank 0 twice"},
      {{"-r", "1:3", "--log_dir", "d", "p"}, "no local rank 1"},
      {{"--local_ranks_filter", "1", "p"}, "no local rank 1"},
      {{"--standalone=1", "p"}, "takes no value"},
      {{"--nnodes"}, "needs a value"},
      {{"--nnodes", "--", "p"}, "needs a value"},
      {{"--standalone", "--nnodes", "2", "p"}, "--standalone is one node"},
      {{"--rdzv_id", "a/b", "p"}, "cannot name a folder"},
      {{"--rdzv_conf", "join_timeout=3", "p"}, "unknown key 'join_timeout'"},
      {{"--rdzv_endpoint", "h:1", "--master_addr", "h", "p"}, "give one"},
      {{"--nnodes", "1"}, "no program given"},
  };
  for (const BadWords& c : cases) {
    SCOPED_TRACE(c.said);
    EXPECT_NE(failure(c.words).find(c.said), std::string::npos) << failure(c.words);
  }
}

TEST(StreamMap, TwoDigitLocalRanks) {
  const auto map = StreamMap::parse("0:1,12:2", "--tee");
  EXPECT_TRUE(map.of(0).out);
  EXPECT_FALSE(map.of(0).err);
  EXPECT_TRUE(map.of(12).err);
  EXPECT_FALSE(map.of(1).any());
  EXPECT_EQ(map.highest(), 12);
  EXPECT_TRUE(StreamMap::parse("3", "-t").of(99).err);
}

}  // namespace
}  // namespace lockstep
