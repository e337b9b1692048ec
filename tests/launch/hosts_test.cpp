// Several agents, other launchers and other programs, as seen from outside.

#include <gtest/gtest.h>
#include <signal.h>

#include "lockstep/base/env.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/launch/launched.h"
#include "tests/support/held_port.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

/// Host `host` of `hosts`, with a host id of its own.
struct Host {
  int host = 0;
  int hosts = 2;
  int ranks = 1;
  int port = 0;
  std::string secret;

  Words words(const Words& command, const Words& options = {}) const {
    Words all = {"run",
                 "--nnodes",
                 std::to_string(hosts),
                 "--node_rank",
                 std::to_string(host),
                 "--nproc_per_node",
                 std::to_string(ranks),
                 "--master_port",
                 std::to_string(port)};
    all.insert(all.end(), options.begin(), options.end());
    all.emplace_back("--");
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  std::map<std::string, std::string> variables() const {
    return {{"LOCKSTEP_HOST_ID", "host" + std::to_string(host)},
            {"LOCKSTEP_SECRET", secret},
            {"OMP_NUM_THREADS", ""}};
  }
};

TEST(Hosts, UnevenHostsFormOneWorld) {
  const HeldPort port;
  const Host first{0, 2, 1, port.number(), "secret"};
  const Host second{1, 2, 2, port.number(), "secret"};
  Launched b(second.words({built_program("world_worker")}), second.variables());  // host 1 is early
  Launched a(first.words({built_program("world_worker")}), first.variables());
  EXPECT_EQ(a.wait(), 0) << a.err();
  EXPECT_EQ(b.wait(), 0) << b.err();
  EXPECT_TRUE(has(a.out(), ":0] rank 0/3 local 0/1 node 0/2 by lockstep")) << a.out();
  EXPECT_TRUE(has(b.out(), ":1] rank 1/3 local 0/2 node 1/2 by lockstep")) << b.out();
  EXPECT_TRUE(has(b.out(), ":2] rank 2/3 local 1/2 node 1/2 by lockstep")) << b.out();
  EXPECT_TRUE(a.wait_all_gone() && b.wait_all_gone());
}

TEST(Hosts, AFailureOnOneHostEndsAllAndIsReportedByAll) {
  const HeldPort port;
  const Host first{0, 2, 1, port.number(), ""};
  const Host second{1, 2, 1, port.number(), ""};
  const std::string script =
      "if [ $GROUP_RANK = 1 ]; then echo broken >&2; exit 6; fi; exec sleep 600";
  Launched a(first.words({"/bin/sh", "-c", script}), first.variables());
  Launched b(second.words({"/bin/sh", "-c", script}), second.variables());
  EXPECT_EQ(a.wait(), 6) << a.err();
  EXPECT_EQ(b.wait(), 6) << b.err();
  for (const std::string& err : {a.err(), b.err()}) {
    EXPECT_TRUE(has(err, "rank 1 (host 1, ")) << err;
  }
  EXPECT_TRUE(has(a.err(), "\n    broken")) << a.err();
  EXPECT_TRUE(has(b.err(), ":1] broken")) << b.err();
  EXPECT_TRUE(has(b.err(), "\n  the end of its stderr is above")) << b.err();
}

TEST(Hosts, AnAgentThatIsKilledEndsTheJob) {
  const HeldPort port;
  const Host first{0, 2, 1, port.number(), ""};
  const Host second{1, 2, 1, port.number(), ""};
  const Words sleeper = {"/bin/sh", "-c", "echo ready; exec sleep 600"};
  Launched a(first.words(sleeper), first.variables());
  Launched b(second.words(sleeper), second.variables());
  ASSERT_TRUE(a.wait_for("ready") && b.wait_for("ready"));
  a.send(SIGKILL);
  EXPECT_EQ(b.wait(), 1) << b.err();
  EXPECT_TRUE(has(b.err(), "the agent of host 0")) << b.err();
  EXPECT_TRUE(a.wait_all_gone() && b.wait_all_gone());
}

TEST(Hosts, AMissingHostIsNamed) {
  const HeldPort port;
  const Host first{0, 3, 1, port.number(), ""};
  Launched a(first.words({"true"}, {"--rdzv_conf", "timeout=2"}), first.variables());
  EXPECT_EQ(a.wait(), 1);
  EXPECT_TRUE(has(a.err(), "host 1, 2 of 3 did not come")) << a.err();
}

TEST(Hosts, EachSaysWhomItWaitsForAndWhoseRankIsTaken) {
  const HeldPort port;
  const Host first{0, 3, 1, port.number(), ""};
  const Host second{1, 3, 1, port.number(), ""};
  Launched a(first.words({"true"}), first.variables());
  Launched b(second.words({"true"}), second.variables());
  const std::string place = "waiting for host 2 at 127.0.0.1:" + std::to_string(port.number());
  EXPECT_TRUE(a.wait_for("2 of 3 hosts are here; " + place)) << a.err();
  EXPECT_TRUE(b.wait_for("2 of 3 hosts are here; " + place)) << b.err();
  Launched again(second.words({"true"}), second.variables());
  EXPECT_EQ(again.wait(), 1);
  EXPECT_TRUE(has(again.err(), "--node_rank 1 is taken by an agent on ")) << again.err();
}

TEST(Hosts, AStoreOfAnotherProgramIsNotJoined) {
  const TcpStoreServer foreign({});
  const std::string place =
      "host 1 waits for host 0 at 127.0.0.1:" + std::to_string(foreign.port()) +
      "; a store is served there, but not";
  const Host host{1, 2, 1, foreign.port(), ""};
  Launched patient(host.words({"true"}), host.variables());
  Launched hasty(host.words({"true"}, {"--rdzv_conf", "timeout=4"}), host.variables());
  EXPECT_EQ(hasty.wait(), 1);
  EXPECT_TRUE(has(hasty.err(), "lockstep run: error: " + place)) << hasty.err();
  EXPECT_TRUE(patient.wait_for("lockstep: " + place)) << patient.err();
  const auto store = connect_tcp_store({"127.0.0.1", foreign.port()}, "", Deadline::after(30s));
  EXPECT_TRUE(store->list("", Deadline::after(30s)).empty());
}

TEST(Hosts, AHostOfAnotherJobIsSentAwayAndDisturbsNobody) {
  const HeldPort port;
  const Host first{0, 2, 1, port.number(), ""};
  const Host second{1, 2, 1, port.number(), ""};
  Launched a(first.words({"true"}, {"--rdzv_id", "monday"}), first.variables());
  Launched stranger(second.words({"true"}, {"--rdzv_id", "tuesday"}), second.variables());
  EXPECT_EQ(stranger.wait(), 1);
  EXPECT_TRUE(has(stranger.err(), "--rdzv_id tuesday: ")) << stranger.err();
  EXPECT_TRUE(has(stranger.err(), ":" + std::to_string(port.number()) + " are of job monday"))
      << stranger.err();
  Launched b(second.words({"true"}, {"--rdzv_id", "monday"}), second.variables());
  EXPECT_EQ(a.wait(), 0) << a.err();
  EXPECT_EQ(b.wait(), 0) << b.err();
}

TEST(Hosts, DisagreementIsSaidByAll) {
  const HeldPort port;
  const Host first{0, 2, 1, port.number(), ""};
  const Host other{1, 3, 1, port.number(), ""};
  Launched a(first.words({"true"}), first.variables());
  Launched b(other.words({"true"}), other.variables());
  EXPECT_EQ(a.wait(), 1);
  EXPECT_EQ(b.wait(), 1);
  EXPECT_TRUE(has(a.err(), "--nnodes 3")) << a.err();
  EXPECT_TRUE(has(b.err(), "--nnodes 3")) << b.err();
}

TEST(Hosts, AnOpenEndpointNeedsASecret) {
  Launched a({"run", "--nnodes", "2", "--master_addr", "10.9.8.7", "true"},
             {{"LOCKSTEP_SECRET", ""}});
  EXPECT_EQ(a.wait(), 2);
  EXPECT_TRUE(has(a.err(), "set LOCKSTEP_SECRET")) << a.err();
}

TEST(Hosts, WithoutASecretTheyMeetWhereTheyAreToldTo) {
  const TempFolder folder;
  for (const std::string backend : {"static", "c10d", "file"}) {
    const HeldPort port;
    // This host, but not loopback by its text.
    const auto place = "0.0.0.0:" + std::to_string(port.number());
    const auto agent = [&](const std::string& host, const std::string& insecure) {
      Words words = {"run", "--nnodes", "2", "--node_rank", host, "--rdzv_backend", backend};
      const Words at =
          backend == "static"
              ? Words{"--master_addr", "0.0.0.0", "--master_port", std::to_string(port.number())}
          : backend == "c10d"
              ? Words{"--rdzv_endpoint", place, "--rdzv_conf",
                      host == "0" ? "is_host=1" : "is_host=0"}
              : Words{"--rdzv_endpoint", (folder / "place").string(), "--local_addr", "0.0.0.0"};
      words.insert(words.end(), at.begin(), at.end());
      words.push_back(built_program("world_worker"));
      return std::make_unique<Launched>(
          words, std::map<std::string, std::string>{{"LOCKSTEP_HOST_ID", "host" + host},
                                                    {"LOCKSTEP_SECRET", ""},
                                                    {"LOCKSTEP_INSECURE", insecure}});
    };
    for (const std::string insecure : {"0", ""}) {
      const auto refused = agent("0", insecure);
      EXPECT_EQ(refused->wait(), 2) << backend;
      for (const char* way : {"LOCKSTEP_SECRET ", "LOCKSTEP_SECRET_FILE", "LOCKSTEP_INSECURE=1"})
        EXPECT_TRUE(has(refused->err(), way)) << backend << ": " << refused->err();
    }
    const auto a = agent("0", "1");
    const auto b = agent("1", "1");
    EXPECT_EQ(a->wait(), 0) << backend << ": " << a->err();
    EXPECT_EQ(b->wait(), 0) << backend << ": " << b->err();
    EXPECT_TRUE(has(a->err(), "LOCKSTEP_INSECURE=1: the hosts meet without a secret")) << a->err();
    EXPECT_TRUE(has(b->out(), "rank 1/2")) << b->out();
  }
}

TEST(Hosts, ANameThatStaysUnknownIsNamedAfterTheWholeWait) {
  const std::string unknown(64, 'x');  // longer than a name's label may be: no lookup is made
  for (const auto& place : {Words{"--master_addr", unknown},
                            Words{"--rdzv_backend", "c10d", "--rdzv_endpoint", unknown + ":1"}}) {
    Words words = {"run", "--nnodes", "2", "--node_rank", "1", "--rdzv_conf", "timeout=1"};
    words.insert(words.end(), place.begin(), place.end());
    words.emplace_back("true");
    Launched run(words, {{"LOCKSTEP_SECRET", "secret"}});
    EXPECT_EQ(run.wait(), 1);
    const auto said = "host '" + unknown + "', where the ranks meet, is still unknown here after ";
    ASSERT_TRUE(has(run.err(), said)) << run.err();
    EXPECT_GE(std::stod(run.err().substr(run.err().find(said) + said.size())), 1.0) << run.err();
  }
}

TEST(World, ThreadsAreSaidOnceByRankZero) {
  Launched run({"run", "--nproc_per_node", "2", built_program("world_worker")},
               {{"OMP_NUM_THREADS", ""}});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(lines_of(run.err()).size(), 1U) << run.err();
  EXPECT_TRUE(has(run.err(), "[0] lockstep: 2 ranks, ")) << run.err();
}

TEST(World, AloneWithoutALauncher) {
  Launched run({built_program("world_worker")});
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "rank 0/1 local 0/1 node 0/1 by none")) << run.out();
}

TEST(World, AShellLoopWithTorchsVariables) {
  const HeldPort port;
  const std::string script =
      "for r in 0 1; do RANK=$r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
      std::to_string(port.number()) + " " + built_program("world_worker") + " & done; wait";
  Launched run({"/bin/sh", "-c", script});
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(has(run.out(), "rank 1/2 local 1/2 node 0/1 by torch")) << run.out() << run.err();
}

TEST(World, UnderRealTorchrun) {
  const std::string source = env_or("LOCKSTEP_SOURCE_DIR", ".");
  const HeldPort port;
  const HeldPort other;
  const TempFolder logs;
  // static: torchrun's own store holds MASTER_PORT; c10d: rank 0 serves there. (--standalone is
  // c10d too, but older torchruns use a fixed port then.)
  const Words fixed = {"--master_port", std::to_string(port.number())};
  const Words dynamic = {"--rdzv_backend",  "c10d",
                         "--rdzv_endpoint", "localhost:" + std::to_string(other.number()),
                         "--rdzv_id",       "test"};
  for (const Words& mode : {fixed, dynamic}) {
    Words words = {"/usr/bin/python3",
                   source + "/tests/launch/torchrun.py",
                   "--nproc_per_node",
                   "2",
                   "--no_python",
                   "--monitor_interval",
                   "0.1"};
    words.insert(words.end(), mode.begin(), mode.end());
    words.push_back(built_program("world_worker"));
    // torchrun leaves its folder of logs.
    Launched run(words, {{"PYTHONDONTWRITEBYTECODE", "1"}, {"TMPDIR", logs.path().string()}});
    EXPECT_EQ(run.wait(120s), 0) << run.err();
    for (const char* rank : {"rank 0/2 local 0/2", "rank 1/2 local 1/2"})
      EXPECT_TRUE(has(run.out(), rank)) << run.out() << run.err();
  }
}

TEST(Run, PyTorchsOwnRendezvousWorksInItsWorkers) {
  const std::string script =
      "import torch, torch.distributed as dist\n"
      "dist.init_process_group('gloo')\n"
      "x = torch.tensor([float(dist.get_rank() + 1)])\n"
      "dist.all_reduce(x)\n"
      "print('sum', x.item())\n";
  Launched run({"run", "--nproc_per_node", "2", "/usr/bin/python3", "-c", script});
  EXPECT_EQ(run.wait(120s), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "[0] sum 3.0") && has(run.out(), "[1] sum 3.0")) << run.out();
}

}  // namespace
}  // namespace lockstep::testing
