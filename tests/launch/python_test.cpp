// PyTorch's own scripts, unmodified, under `lockstep run`, with Debian's python3-torch.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "lockstep/base/env.h"
#include "tests/launch/launched.h"
#include "tests/support/temp_folder.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

/// torch loads for seconds, longer on a busy machine.
constexpr auto kLimit = 120s;

std::string script(const std::string& name) {
  return env_or("LOCKSTEP_SOURCE_DIR", ".") + "/tests/launch/python/" + name;
}

/// The Python that has torch.
std::map<std::string, std::string> python() {
  return {{"PYTHON_EXEC", "/usr/bin/python3"}};
}

/// Each rank's text after "weights".
std::multiset<std::string> weights(const std::string& out) {
  std::multiset<std::string> all;
  for (const std::string& line : lines_of(out)) {
    const size_t at = line.find("weights ");
    if (at != std::string::npos) all.insert(line.substr(at));
  }
  return all;
}

TEST(Python, DistributedDataParallelTrainsToEqualWeights) {
  Launched run({"run", "--standalone", "--nproc_per_node=2", script("ddp_train.py"), "--steps", "4",
                "--local_rank=${local_rank}"},
               python());
  ASSERT_EQ(run.wait(kLimit), 0) << run.err();
  const auto ends = weights(run.out());
  ASSERT_EQ(ends.size(), 2U) << run.out();
  EXPECT_EQ(*ends.begin(), *ends.rbegin());
  EXPECT_TRUE(run.wait_all_gone());
}

/// Debian's PyTorch 1.13 numbers the store's operations otherwise than 2.x.
TEST(Python, TheAgentsStoreServesOlderClients) {
  const std::string text =
      "import os, torch.distributed as dist\n"
      "rank, host = int(os.environ['RANK']), os.environ['MASTER_ADDR']\n"
      "store = dist.TCPStore(host, int(os.environ['MASTER_PORT']), None, False)\n"
      "store.set(f'rank{rank}', f'value{rank}')\n"
      "store.wait(['rank0', 'rank1'])\n"
      "assert store.get(f'rank{1 - rank}') == f'value{1 - rank}'.encode()\n"
      "assert rank == 1 or store.compare_set('c', '', 'a') == b'a'\n"
      "assert rank == 1 or store.compare_set('c', 'b', 'x') == b'a'\n"
      "assert rank == 1 or (store.delete_key('c'), store.delete_key('c')) == (True, False)\n"
      "store.add('sum', rank + 1)\n"
      "while store.add('sum', 0) < 3: pass\n"
      "dist.init_process_group('gloo')\n"
      "dist.barrier()\n"
      "print('store', os.environ['TORCHELASTIC_USE_AGENT_STORE'], store.get('sum').decode())\n";
  Launched run({"run", "--nproc_per_node", "2", "/usr/bin/python3", "-c", text});
  EXPECT_EQ(run.wait(kLimit), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "[0] store True 3") && has(run.out(), "[1] store True 3"))
      << run.out() << run.err();
}

TEST(Python, ModulesAndRunPathAsWell) {
  auto variables = python();
  variables["PYTHONPATH"] = script("");
  Launched module({"run", "--nproc_per_node=2", "-m", "ddp_train", "--steps=2"}, variables);
  EXPECT_EQ(module.wait(kLimit), 0) << module.err();
  Launched path({"run", "--nproc_per_node=2", "--run_path", script("ddp_train.py"), "--steps=2"},
                python());
  EXPECT_EQ(path.wait(kLimit), 0) << path.err();
  EXPECT_EQ(weights(module.out()), weights(path.out()));
  EXPECT_EQ(weights(path.out()).size(), 2U);
}

TEST(Python, ARecordedExceptionIsTheCause) {
  const TempFolder folder;
  auto variables = python();
  variables["TORCHELASTIC_ERROR_FILE"] = (folder / "ours.json").string();
  Launched run({"run", "--nproc_per_node=2", script("recorded_failure.py")}, variables);
  EXPECT_EQ(run.wait(kLimit), 1);
  EXPECT_TRUE(has(run.err(), "failed first: exit code 1")) << run.err();
  EXPECT_TRUE(has(run.err(), "\n  ValueError: the batch is bad\n")) << run.err();
  std::ifstream file(folder / "ours.json");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(has(text.str(), "ValueError: the batch is bad")) << text.str();
  EXPECT_TRUE(has(text.str(), "\"errorCode\":1")) << text.str();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Python, ElasticRestartCountsUp) {
  Launched run({"run", "--nproc_per_node=2", "--max_restarts=1", script("elastic_restart.py")},
               python());
  EXPECT_EQ(run.wait(kLimit), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "attempt 0 of 1: sum 2")) << run.out();
  EXPECT_TRUE(has(run.out(), "attempt 1 of 1: sum 2")) << run.out();
  EXPECT_TRUE(run.wait_all_gone());
}

TEST(Python, AScriptThatIsNotThereIsOneLine) {
  Launched run({"run", "--nproc_per_node=2", "no_such.py"}, python());
  EXPECT_EQ(run.wait(), 127);
  EXPECT_EQ(lines_of(run.err()).size(), 1U) << run.err();
  EXPECT_TRUE(has(run.err(), "no_such.py")) << run.err();
}

}  // namespace
}  // namespace lockstep::testing
