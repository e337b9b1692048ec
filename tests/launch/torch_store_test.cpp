// torch's own store at MASTER_ADDR:MASTER_PORT, which the agent serves as torchrun's does.

#include <gtest/gtest.h>

#include "lockstep/launch/rendezvous/workers_store.h"
#include "tests/launch/launched.h"
#include "tests/store/torch/torch_bytes.h"
#include "tests/support/held_port.h"

namespace lockstep::testing {
namespace {

using Words = std::vector<std::string>;

/// A command of bash that sends `bytes` to the store.
std::string say(const std::string& bytes) {
  std::string text = "printf '";
  for (const unsigned char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text + "' >&3;";
}

const std::string kOpenStore = "exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT;" + say(torch_hello());
const std::string kSetKey = say(op(1) + sized("/k") + sized("v"));
const std::string kWaitForKey = say(op(6) + counted({"/k"})) + "head -c 1 <&3 >/dev/null;";
const std::string kSayValue =
    say(op(3) + sized("/k")) + "echo rank $RANK got $(head -c 9 <&3 | tail -c 1);";
/// The number of keys that there are.
const std::string kSayNumber =
    say(op(7)) + "echo attempt $TORCHELASTIC_RESTART_COUNT has $(head -c 8 <&3 | od -An -tu1 -N1);";

Words bash(const std::string& script, const Words& options) {
  Words words = {"run"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "/bin/bash", "-c", script});
  return words;
}

TEST(TorchStore, TheAgentServesItBeforeAnyRankDoes) {
  // Rank 1 waits until the key is there, so rank 0 may come later.
  const std::string script = "echo store $TORCHELASTIC_USE_AGENT_STORE;" + kOpenStore +
                             "if [ $RANK = 0 ]; then " + kSetKey + "fi;" + kWaitForKey + kSayValue;
  Launched run(bash(script, {"--nproc_per_node", "2"}));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "[0] rank 0 got v")) << run.out() << run.err();
  EXPECT_TRUE(has(run.out(), "[1] rank 1 got v")) << run.out() << run.err();
  EXPECT_TRUE(has(run.out(), "store True")) << run.out();
}

TEST(TorchStore, EachAttemptHasItsOwnAlsoAtAPortOfTheUsers) {
  const HeldPort port;
  const std::string script = "echo port $MASTER_PORT;" + kOpenStore + kSetKey + kWaitForKey +
                             "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3";
  const std::string count = kOpenStore + kSayNumber;
  for (const Words& options : {Words{}, Words{"--master_port", std::to_string(port.number())}}) {
    Words words = {"--max_restarts", "1"};
    words.insert(words.end(), options.begin(), options.end());
    Launched run(bash(count + script, words));
    EXPECT_EQ(run.wait(), 0) << run.err();
    EXPECT_TRUE(has(run.out(), "attempt 0 has 0")) << run.out();
    EXPECT_TRUE(has(run.out(), "attempt 1 has 0")) << run.out();
    if (options.empty()) continue;
    EXPECT_EQ(times_in(run.out(), "port " + options.back()), 2) << run.out();
  }
}

TEST(TorchStore, AllNodesReachNodeZerosStore) {
  const HeldPort port;
  const std::string script =
      kOpenStore + "if [ $GROUP_RANK = 1 ]; then " + kSetKey + "fi;" + kWaitForKey + kSayValue;
  const auto node = [&](const char* rank) {
    return bash(script, {"--nnodes", "2", "--node_rank", rank, "--master_port",
                         std::to_string(port.number())});
  };
  // torchrun does not heed the variable in this mode.
  const std::map<std::string, std::string> off = {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}};
  Launched one(node("1"), off);
  Launched zero(node("0"), off);
  EXPECT_EQ(zero.wait(), 0) << zero.err();
  EXPECT_EQ(one.wait(), 0) << one.err();
  EXPECT_TRUE(has(zero.out(), "rank 0 got v")) << zero.out() << zero.err();
  EXPECT_TRUE(has(one.out(), "rank 1 got v")) << one.out() << one.err();
}

TEST(TorchStore, RankZeroCanServeItInstead) {
  const std::string script =
      "echo store $TORCHELASTIC_USE_AGENT_STORE;"
      "(exec 3<>/dev/tcp/$MASTER_ADDR/$MASTER_PORT) 2>/dev/null && echo served || echo free";
  const std::map<std::string, std::string> off = {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}};
  Launched run(bash(script, {}), off);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "store False\nfree\n");
}

/// As in torchrun 2.13: its static backend disregards the variable.
TEST(TorchStore, WhoServesItFollowsTorchrun) {
  const auto served = [](const Words& options, const Environment& environment) {
    Words words = options;
    words.emplace_back("p");
    return agent_serves_torch(
        parse_run_options(words, environment, [] { return HostResources{}; }));
  };
  const Environment off = {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"}};
  const Words elastic = {"--nnodes", "1:2", "--rdzv_endpoint", "a:1"};
  EXPECT_TRUE(served({}, {}));
  EXPECT_TRUE(served(elastic, {}));
  EXPECT_TRUE(served({}, {{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0"}}));
  EXPECT_FALSE(served({}, off));
  EXPECT_FALSE(served({"--standalone"}, off));
  EXPECT_FALSE(served(elastic, off));
  EXPECT_TRUE(served({"--master_port", "29500"}, off));
  EXPECT_TRUE(served({"--nnodes", "2"}, off));
}

}  // namespace
}  // namespace lockstep::testing
