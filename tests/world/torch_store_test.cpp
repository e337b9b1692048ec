#include "lockstep/world/torch_store.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

#include "lockstep/base/auth.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/support/held_port.h"

namespace lockstep {
namespace {

/// Rank `rank` of 2 under a launcher that holds `port`.
Identity member(int rank, int port, bool taken, const std::string& job) {
  Identity id;
  id.launcher = "torch";
  id.rank = rank;
  id.size = 2;
  id.local_size = 2;
  id.master = {"127.0.0.1", port};
  id.master_taken = taken;
  id.job_id = job;
  return id;
}

/// Rank 1 comes first, rank 0 later; both must reach the same store.
void expect_meeting(int port, bool taken, const std::string& host = "127.0.0.1") {
  const auto deadline = Deadline::after(30s);
  const auto meet = [&](int rank) {
    Identity id = member(rank, port, taken, "job");
    id.master.host = host;
    return meet_torch_store(id, deadline);
  };
  auto late = std::async(std::launch::async, [&] { return meet(1)->get("key", deadline); });
  const auto store = meet(0);
  store->set("key", "value", deadline);
  EXPECT_EQ(late.get(), "value");
}

TEST(TorchStore, RankZeroServesAtMasterPort) {
  const testing::HeldPort port;
  expect_meeting(port.number(), false);
}

// `hostname -i` prints it on Debian.
TEST(TorchStore, RankZeroServesAtAnotherAddressOfLoopback) {
  const testing::HeldPort port;
  expect_meeting(port.number(), false, "127.0.1.1");
}

// Every user of the host can guess the input of store_secret().
TEST(TorchStore, WithoutASecretNobodyElseOfTheHostComesIn) {
  const testing::HeldPort port;
  const Identity zero = member(0, port.number(), false, "job");
  const auto store = meet_torch_store(zero, Deadline::after(30s));
  const auto fd = tcp_connect({"127.0.0.1", port.number()}, Deadline::after(30s));
  EXPECT_THROW(authenticate_client(fd.get(), store_secret(zero), "store", Deadline::after(30s)),
               Error);
}

TEST(TorchStore, MeetsOnADerivedPortWhereTorchrunHasMasterPort) {
  const UniqueFd torchruns = tcp_listen("127.0.0.1", 0);
  expect_meeting(local_port(torchruns.get()), true);
}

TEST(TorchStore, PassesByAnotherJobAndAForeignServiceOnItsPorts) {
  const UniqueFd torchruns = tcp_listen("127.0.0.1", 0);
  const int port = local_port(torchruns.get());
  const auto ports = store_ports(member(0, port, true, "job"));
  // Another job's store, made as that job would; and a server that never answers.
  const Identity other = member(0, port, true, "other");
  std::optional<TcpStoreServer> foreign;
  UniqueFd mute;
  try {
    foreign.emplace(TcpStoreServerOptions{"127.0.0.1", ports[0], store_secret(other)});
    mute = tcp_listen("127.0.0.1", ports[1]);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);  // another server was there first, which is
                                                       // as good
  }
  expect_meeting(port, true);
}

TEST(TorchStore, RankZeroStaysUntilTheOthersHaveLeft) {
  const testing::HeldPort port;
  const auto deadline = Deadline::after(30s);
  auto late = std::async(std::launch::async, [&] {
    const auto store = meet_torch_store(member(1, port.number(), false, "job"), deadline);
    store->set("here", "", deadline);
    std::this_thread::sleep_for(200ms);
    store->set("still here", "", deadline);  // throws when the server has gone
  });
  meet_torch_store(member(0, port.number(), false, "job"), deadline)->get("here", deadline);
  EXPECT_NO_THROW(late.get());
}

TEST(TorchStore, TakenMasterPortIsSaid) {
  const UniqueFd taken = tcp_listen("127.0.0.1", 0);
  const int port = local_port(taken.get());
  try {
    meet_torch_store(member(0, port, false, "job"), Deadline::after(5s));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(std::string(error.what()).find(std::to_string(port)), std::string::npos);
  }
}

TEST(TorchStore, MissingRankZeroIsATimeoutThatNamesThePlace) {
  const UniqueFd torchruns = tcp_listen("127.0.0.1", 0);
  const Identity id = member(1, local_port(torchruns.get()), true, "nobody serves this");
  try {
    meet_torch_store(id, Deadline::after(300ms));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_NE(std::string(error.what()).find(std::to_string(store_ports(id)[0])),
              std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
