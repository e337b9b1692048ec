#include "lockstep/launch/job/run_options.h"

#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/launch/agent/worker_command.h"
#include "tests/world/detect/environments.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

RunOptions parse(const Words& words, const Environment& environment = {},
                 HostResources resources = {8, 0}) {
  return parse_run_options(words, environment, [&] { return resources; });
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
  EXPECT_EQ(options.min_nodes, 1);
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

TEST(RunOptions, ProcessesPerHost) {
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
  EXPECT_EQ(options.min_nodes, 2);
  EXPECT_EQ(options.num_nodes, 2);
  EXPECT_EQ(options.node_rank, 1);
  EXPECT_EQ(options.master_port, 29500);
  const auto endpoint = parse({"--nnodes", "2", "--rdzv_endpoint", "h:12", "p"});
  EXPECT_EQ(endpoint.master_addr, "h");
  EXPECT_EQ(endpoint.master_port, 12);
}

TEST(RunOptions, LogFolderAloneMeansTee) {
  EXPECT_TRUE(parse({"--log_dir", "d", "p"}).tee.of(7).out);
  EXPECT_FALSE(parse({"--log_dir", "d", "-r", "3", "p"}).tee.any());
  EXPECT_FALSE(parse({"--log_dir", "d", "-t", "0", "p"}).tee.any());
}

TEST(RunOptions, NodesThatComeAndGo) {
  const auto range = parse({"--nnodes", "2:4", "--rdzv_endpoint", "h", "p"});
  EXPECT_EQ(range.min_nodes, 2);
  EXPECT_EQ(range.num_nodes, 4);
  EXPECT_EQ(range.rdzv_backend, "c10d");
  EXPECT_EQ(range.master_addr, "h");
  EXPECT_EQ(range.master_port, 29400);
  EXPECT_FALSE(range.node_rank_given);
  const auto given = parse({"--nnodes", "2", "--rdzv_backend", "c10d", "--rdzv_endpoint", "[::1]:7",
                            "--node_rank=1", "p"});
  EXPECT_EQ(given.master_addr, "::1");
  EXPECT_EQ(given.master_port, 7);
  EXPECT_EQ(given.node_rank, 1);
  EXPECT_TRUE(given.node_rank_given);
}

TEST(RunOptions, EndpointsOfEtcd) {
  for (const char* name : {"etcd", "etcd-v2"}) {
    const auto of = [&](const std::string& endpoint, const std::string& conf) {
      return Words{
          "--nnodes", "1:2", "--rdzv_backend", name, "--rdzv_endpoint", endpoint, "--rdzv_conf",
          conf,       "p"};
    };
    for (const char* endpoint :
         {"h:2379,g", "http://h:2379/,http://g", "https://h:2379,g", "https://h:2379/,https://g"}) {
      const auto etcd = parse(of(endpoint, "timeout=9"));
      EXPECT_EQ(etcd.rdzv_backend, name);
      EXPECT_EQ(etcd.rdzv_endpoint, "h:2379,g");
      EXPECT_EQ(etcd.https, std::string(endpoint).starts_with("https")) << endpoint;
      if (!std::string(endpoint).starts_with("http:")) {
        EXPECT_TRUE(parse(of(endpoint, "protocol=https")).https) << endpoint;
      }
    }
    EXPECT_NE(failure(of("etcd://h:2379", "timeout=9")).find("'etcd' is neither http nor https"),
              std::string::npos);
    for (const Words& words :
         {of("http://h,https://g", "timeout=9"), of("http://h", "protocol=https")})
      EXPECT_NE(failure(words).find("give one"), std::string::npos);
  }
}

TEST(RunOptions, EndpointsOfFilesAreLeftAsTheyAre) {
  const auto file =
      parse({"--nnodes=2", "--rdzv_backend=file", "--rdzv_endpoint=/shared/job", "p"});
  EXPECT_EQ(file.rdzv_backend, "file");
  EXPECT_EQ(file.rdzv_endpoint, "/shared/job");
  const auto store = parse({"--nnodes=2", "--rdzv_backend=c10d", "--rdzv_endpoint=/shared/job",
                            "--rdzv_conf=store_type=file", "p"});
  EXPECT_EQ(store.rdzv_backend, "file");
}

TEST(RunOptions, OneNodeMeetsNobodyWhateverIsSaidAboutIt) {
  for (const Words& words :
       {Words{"--standalone", "p"}, Words{"--standalone", "--nnodes", "1:4", "p"},
        Words{"--standalone", "--rdzv_backend", "etcd", "--rdzv_endpoint", "h:1", "p"},
        Words{"--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0", "p"},
        Words{"--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:29400", "p"}}) {
    const auto options = parse(words);
    EXPECT_EQ(options.num_nodes, 1);
    EXPECT_EQ(options.master_port, 0) << "torchrun, too, draws MASTER_PORT then";
    EXPECT_EQ(options.master_addr, "127.0.0.1");
  }
  EXPECT_EQ(parse({"--rdzv_endpoint", "127.0.0.1:29510", "p"}).master_port, 29510);
}

TEST(RunOptions, RendezvousConf) {
  const auto conf = parse({"--rdzv_conf",
                           "timeout=2.5, last_call_timeout = 7,keep_alive_interval=1,"
                           "keep_alive_max_attempt=4,read_timeout=9,is_host=False,rank=0,"
                           "close_timeout=1,heartbeat_timeout=1,protocol=https,ca_cert=c,"
                           "ssl_cert=s,key=k,etcd_prefix=/x",
                           "p"});
  EXPECT_EQ(conf.join_timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(conf.last_call_timeout, std::chrono::seconds(7));
  EXPECT_EQ(conf.heartbeat_interval, std::chrono::seconds(1));
  EXPECT_EQ(conf.heartbeat_attempts, 4);
  EXPECT_EQ(conf.read_timeout, std::chrono::seconds(9));
  EXPECT_EQ(conf.is_host, false);
  EXPECT_EQ(conf.node_rank, 0);
  EXPECT_TRUE(conf.https);
  EXPECT_EQ(conf.ca_cert + conf.ssl_cert + conf.ssl_cert_key + conf.etcd_prefix, "csk/x");
  EXPECT_EQ(parse({"--rdzv_conf", "join_timeout=3", "p"}).join_timeout, std::chrono::seconds(3));
}

TEST(RunOptions, AConfiguredRankIsTheNodesRank) {
  EXPECT_EQ(parse({"--nnodes=3", "--rdzv_conf=rank=2", "p"}).node_rank, 2);
  EXPECT_NE(failure({"--nnodes=3", "--rdzv_conf=rank=2", "--node_rank=1", "p"}).find("give one"),
            std::string::npos);
}

TEST(RunOptions, WhatTorchrunTakesIsTaken) {
  for (const Words& words :
       {Words{"--no-python", "p"}, Words{"--monitor_interval", "0.1", "p"},
        Words{"--rdzv_backend", "static", "p"}, Words{"--max_restarts", "1", "p"},
        Words{"--standalone", "p"}, Words{"--role", "trainer", "p"},
        Words{"--start_method", "fork", "p"}, Words{"--logs_specs", "default", "p"},
        Words{"--event_log_handler", "null", "p"}, Words{"-m", "p"}, Words{"--run-path", "p"},
        Words{"--signals-to-handle", "TERM,SIGINT,SIGHUP,QUIT", "p"}, Words{"--use_env", "p"},
        Words{"--numa-binding", "core-complex", "p"}, Words{"--duplicate-stdout-filters", "x", "p"},
        Words{"--rdzv_backend", "parallel", "--enable_tiered_parallel_tcpstore=true", "p"}}) {
    EXPECT_EQ(parse(words).command, Words{"p"});
    parse(words);
  }
  EXPECT_EQ(parse({"--max-restarts", "3", "p"}).max_restarts, 3);
  EXPECT_TRUE(parse({"p"}, {{"PET_VIRTUAL_LOCAL_RANK", "1"}}).virtual_local_rank);
}

TEST(RunOptions, WhatIsNotDoneIsRefusedNeverIgnored) {
  const auto refused = [](const Words& words) {
    try {
      parse(words);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const Words& words :
       {Words{"--logs_specs", "x", "p"}, Words{"--event_log_handler", "x", "p"},
        Words{"--map-by", "node", "p"}, Words{"--worker_log_name", "x", "p"}}) {
    EXPECT_NE(refused(words).find("not supported"), std::string::npos) << words[0];
  }
}

TEST(RunOptions, CoresOfRanksInTorchrunsMsrunsAndMpirunsWords) {
  const auto binding = [](const Words& words) { return parse(words).core_binding; };
  EXPECT_EQ(binding({"p"}), CoreBinding::kNone);
  EXPECT_EQ(binding({"--numa_binding", "node", "p"}), CoreBinding::kNode);
  EXPECT_EQ(binding({"--numa_binding=socket", "p"}), CoreBinding::kSocket);
  EXPECT_EQ(binding({"--numa_binding=exclusive", "p"}), CoreBinding::kExclusive);
  EXPECT_EQ(binding({"--numa_binding=core-complex", "p"}), CoreBinding::kCoreComplex);
  EXPECT_EQ(binding({"--bind_core", "True", "p"}), CoreBinding::kExclusive);
  EXPECT_EQ(binding({"--bind_core=False", "p"}), CoreBinding::kNone);
  EXPECT_EQ(binding({"--bind-to", "numa", "p"}), CoreBinding::kNode);
  EXPECT_EQ(binding({"--bind-to", "none", "--map-by", "slot", "--tag-output", "p"}),
            CoreBinding::kNone);
}

TEST(RunOptions, MpirunsHarmlessWordsAreTaken) {
  for (const Words& words :
       {Words{"--bind-to", "core", "p"}, Words{"--bind-to", "hwthread:overload-allowed", "p"},
        Words{"--map-by", "slot:PE=4", "p"}, Words{"-mca", "pml", "ob1", "p"},
        Words{"--mca", "btl_tcp_if_include", "eth0", "p"}, Words{"--report-bindings", "p"},
        Words{"-report-bindings", "p"}}) {
    EXPECT_EQ(parse(words).command, Words{"p"}) << words[0] << " " << words[1];
    EXPECT_EQ(parse(words).core_binding, CoreBinding::kNone);
  }
  EXPECT_NE(failure(Words{"-mca", "pml"}).find("needs two words"), std::string::npos);
}

TEST(RunOptions, MpirunsNumberOfRanksASocketIsRefused) {
  for (const char* words : {"ppr:2:socket", "ppr:2", "ppr:1:numa:PE=4"}) {
    const std::string said = failure(Words{"--map-by", words, "p"});
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_NE(said.find("ppr:N:node or --nproc_per_node N"), std::string::npos) << said;
  }
}

TEST(RunOptions, RanksOfANodeInMpirunsWords) {
  EXPECT_EQ(parse({"-N", "4", "p"}).nproc_per_node, 4);
  EXPECT_EQ(parse({"-npernode", "4", "p"}).nproc_per_node, 4);
  EXPECT_EQ(parse({"--map-by", "ppr:4:node", "p"}).nproc_per_node, 4);
  EXPECT_EQ(parse({"-H", "a:2", "-N", "2", "p"}).nproc_per_node, 2);
  EXPECT_EQ(parse({"-wdir", "/tmp", "p"}).work_folder, "/tmp");
  EXPECT_EQ(parse({"--logdir", "d", "p"}).log_dir, "d");
}

TEST(RunOptions, TheLocalRankIsAnArgumentWhereItIsAskedFor) {
  const auto options = parse({"--pass_local_rank", "train.py", "--lr", "1"});
  EXPECT_EQ(with_local_rank(worker_command(options, {}), 3),
            (Words{"python3", "-u", "train.py", "--local-rank=3", "--lr", "1"}));
}

/// The third task of a step on three nodes, one a node.
Inputs in_step(const std::string& more = "") {
  return inputs_of(
      "LOCKSTEP_SECRET=s SLURM_JOB_ID=8 SLURM_STEP_ID=0 SLURM_PROCID=2 "
      "SLURM_LOCALID=0 SLURM_NODEID=2 SLURM_STEP_NUM_TASKS=3 "
      "SLURM_STEP_NODELIST=gpu[01-02,7] SLURM_STEP_TASKS_PER_NODE=1(x3) SLURM_GTIDS=2 " +
      more);
}

TEST(RunOptions, AgentsOfAStepOfSrunAreItsNodes) {
  RunOptions options = parse({"--nproc_per_node", "2", "p"});
  take_hosts_of_step(in_step(), &options);
  EXPECT_EQ(options.num_nodes, 3);
  EXPECT_EQ(options.min_nodes, 3);
  EXPECT_EQ(options.node_rank, 2);
  EXPECT_EQ(options.master_addr, "gpu01");
  EXPECT_GE(options.master_port, 20000);
  EXPECT_EQ(options.run_id, "slurm-8.0");
  for (const Words& words : {Words{"--standalone", "p"}, Words{"--nnodes", "1", "p"}}) {
    RunOptions alone = parse(words);
    take_hosts_of_step(in_step(), &alone);
    EXPECT_EQ(alone.num_nodes, 1) << words[0];
  }
  RunOptions inner = parse({"p"});
  take_hosts_of_step(in_step("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 "
                             "OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1"),
                     &inner);
  EXPECT_EQ(inner.num_nodes, 1) << "mpirun started it, not srun";
}

TEST(RunOptions, AgentsOfAStepWithoutASecretGetOneByMunge) {
  Inputs inputs = in_step("LOCKSTEP_SECRET=");
  inputs.has_munge = [] { return true; };
  RunOptions options = parse({"p"});
  const auto step = take_hosts_of_step(inputs, &options);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->master.host, "gpu01");
  EXPECT_EQ(options.num_nodes, 3);
  inputs.variables["LOCKSTEP_SECRET"] = "s";
  RunOptions given = parse({"p"});
  EXPECT_FALSE(take_hosts_of_step(inputs, &given)) << "the user's counts";
  RunOptions elsewhere = parse({"--master_addr", "gpu02", "p"});
  inputs.variables["LOCKSTEP_SECRET"] = "";
  EXPECT_EQ(take_hosts_of_step(inputs, &elsewhere)->master.host, "gpu01") << "where task 0 runs";
}

TEST(RunOptions, SeveralAgentsOnANodeOfAStepAreRefused) {
  RunOptions options = parse({"p"});
  try {
    take_hosts_of_step(in_step("SLURM_STEP_NUM_TASKS=6 SLURM_STEP_TASKS_PER_NODE=2(x3) "
                               "SLURM_PROCID=4 SLURM_GTIDS=4,5"),
                       &options);
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("6 times on 3 nodes"), std::string::npos);
  }
}

TEST(RunOptions, FiltersAreTextsWithCommasBetweenThem) {
  const auto filters = [](const std::string& value) {
    return parse({"--duplicate_stdout_filters", value, "p"}).stdout_filters;
  };
  EXPECT_EQ(filters("apple,orange"), (Words{"apple", "orange"}));
  EXPECT_EQ(filters("a,,b,c"), (Words{"a,b", "c"}));
  EXPECT_EQ(parse({"--duplicate_stderr_filters", "e", "p"}).stderr_filters, Words{"e"});
  EXPECT_EQ(parse({"p"}, {{"PET_DUPLICATE_STDERR_FILTERS", "e"}}).stderr_filters, Words{"e"});
}

struct BadWords {
  Words words;
  const char* said;
};

TEST(RunOptions, RefusalsNameTheOption) {
  const BadWords cases[] = {
      {{"--nproc_per_nod", "2", "p"}, "did you mean '--nproc_per_node'"},
      {{"--nproc", "2", "p"}, "did you mean '--nproc_per_node'"},
      {{"--xpu", "2", "p"}, "unknown option '--xpu' (lockstep run --help lists them)"},
      {{"-y", "p"}, "lockstep run: unknown option '-y' (lockstep run --help lists them)"},
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
      {{"-r", "4", "--log_dir", "d", "p"}, "-r (0 none"},
      {{"-r", "0:3,0:1", "--log_dir", "d", "p"}, "local rank 0 twice"},
      {{"-r", "1:3", "--log_dir", "d", "p"}, "no local rank 1"},
      {{"--local_ranks_filter", "1", "p"}, "no local rank 1"},
      {{"--standalone=1", "p"}, "takes no value"},
      {{"--nnodes"}, "needs a value"},
      {{"--nnodes", "--", "p"}, "needs a value"},
      {{"--standalone", "--nnodes", "2", "p"}, "--standalone is one host"},
      {{"--rdzv_id", "a/b", "p"}, "cannot name a folder"},
      {{"--rdzv_conf", "lastcall_timeout=3", "p"}, "did you mean 'last_call_timeout'"},
      {{"--rdzv_conf", "zzz=3", "p"}, "there are: timeout, join_timeout"},
      {{"--rdzv_conf", "timeout=3,join_timeout=4", "p"}, "join_timeout is given twice"},
      {{"--rdzv_conf", "timeout", "p"}, "'timeout' is not KEY=VALUE"},
      {{"--rdzv_conf", "timeout=", "p"}, "is not KEY=VALUE"},
      {{"--rdzv_conf", "keep_alive_interval=0", "p"},
       "keep_alive_interval=0: from 0.001 to 8640 s"},
      {{"--rdzv_conf", "keep_alive_interval=9,keep_alive_max_attempt=10000", "p"},
       "to 8.64 s are allowed with keep_alive_max_attempt=10000"},
      {{"--rdzv_conf", "is_host=maybe", "p"}, "neither true nor false"},
      {{"--rdzv_backend", "c10", "p"}, "did you mean 'c10d'"},
      {{"--nnodes=2:1", "p"}, "MIN 2 is above MAX 1"},
      {{"--nnodes=1:2", "--rdzv_backend=static", "p"}, "number of hosts is fixed"},
      {{"--nnodes=1:2", "p"}, "--rdzv_endpoint HOST[:PORT]"},
      {{"--nnodes=2", "--rdzv_backend=etcd", "p"}, "needs --rdzv_endpoint HOST[:PORT]"},
      {{"--nnodes=2", "--rdzv_backend=file", "p"}, "needs --rdzv_endpoint FOLDER"},
      {{"--rdzv_endpoint", "h:1", "--master_addr", "g", "p"}, "give one"},
      {{"--nnodes=1:2", "--rdzv_endpoint", "https://h:1", "p"}, "endpoint 'https://h:1'"},
      {{"-m", "--no_python", "p"}, "--module and --no_python exclude"},
      {{"--start_method", "thread", "p"}, "none of spawn, fork, forkserver"},
      {{"--signals_to_handle", "SIGKILL", "p"}, "'SIGKILL' is none of SIGTERM"},
      {{"--monitor_interval", "often", "p"}, "not a number of seconds"},
      {{"--numa_binding", "nodes", "p"}, "did you mean 'node'"},
      {{"--bind_core", "{}", "p"}, "neither True nor False"},
      {{"--bind-to", "cpu", "p"}, "none of none, numa, socket, l3cache"},
      {{"--bind_core", "True", "--numa_binding", "node", "p"}, "already chosen"},
      {{"--duplicate_stdout_filters", "a,", "p"}, "a text to look for is empty"},
      {{"--enable_tiered_parallel_tcpstore", "x", "p"}, "neither true nor false"},
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

TEST(WorkerCommand, PythonScriptsAreRunByPython) {
  const auto command = [](const Words& words, const Environment& environment = {}) {
    return worker_command(parse(words), environment);
  };
  EXPECT_EQ(command({"train.py", "-x"}), (Words{"python3", "-u", "train.py", "-x"}));
  EXPECT_EQ(command({"train.py"}, {{"PYTHON_EXEC", "/opt/py"}}),
            (Words{"/opt/py", "-u", "train.py"}));
  EXPECT_EQ(command({"-m", "a.b", "c"}), (Words{"python3", "-u", "-m", "a.b", "c"}));
  EXPECT_EQ(command({"--no_python", "train.py"}), Words{"train.py"});
  EXPECT_EQ(command({"trainer", "train.py"}), (Words{"trainer", "train.py"}));
  const auto run_path = command({"--run_path", "train", "-x"});
  ASSERT_EQ(run_path.size(), 6U);
  EXPECT_EQ(run_path[2], "-c");
  EXPECT_EQ(run_path[4] + run_path[5], "train-x");
  EXPECT_EQ(python_script(parse({"-m", "a.py"})), "");
  EXPECT_EQ(python_script(parse({"a.py"})), "a.py");
}

TEST(WorkerCommand, LocalRankIsReplacedAndNothingElse) {
  const Words words = {"$local_rank", "--r=${local_rank}", "$local_rank/x", "$local_ranks",
                       "kill -9 $$",  "$$local_rank",      "$RANK",         "$"};
  EXPECT_EQ(with_local_rank(words, 12), (Words{"$local_rank", "--r=12", "12/x", "$local_ranks",
                                               "kill -9 $$", "$$local_rank", "$RANK", "$"}));
}

}  // namespace
}  // namespace lockstep
