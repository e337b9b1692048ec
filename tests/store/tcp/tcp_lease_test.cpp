// Leased keys over TCP when their holder's process is killed, stopped or silent.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/literals.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::error_of;
using testing::mentions;
using testing::soon;

class TcpLeaseTest : public ::testing::Test {
 protected:
  std::shared_ptr<Store> connect() const {
    return connect_tcp_store({"127.0.0.1", server_.port()}, "", soon());
  }
  /// Returns once `key` is gone.
  void wait_until_erased(const std::string& key) const { testing::wait_until_erased(*other_, key); }

  TcpStoreServer server_{TcpStoreServerOptions{}};
  std::shared_ptr<Store> other_ = connect();
};

/// A process with the lease of key "k", which it renews until it is stopped.
class HolderProcess {
 public:
  HolderProcess(int port, std::chrono::milliseconds ttl) : pid_(::fork()) {
    if (pid_ != 0) return;
    while (true) {
      try {
        renew(*connect_tcp_store({"127.0.0.1", port}, "", soon()), ttl);
      } catch (const Error&) {
        // This machine was too busy, and the client was late. It begins anew.
      }
    }
  }
  ~HolderProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  HolderProcess(const HolderProcess&) = delete;
  HolderProcess& operator=(const HolderProcess&) = delete;
  void kill() const { ::kill(pid_, SIGKILL); }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }

 private:
  static void renew(Store& store, std::chrono::milliseconds ttl) {
    while (true) {
      store.set_with_lease("k", "v", ttl, soon());
      std::this_thread::sleep_for(50ms);
    }
  }

  pid_t pid_;
};

TEST_F(TcpLeaseTest, AKilledHoldersKeyIsGoneLongBeforeItsTime) {
  const HolderProcess holder(server_.port(), 1h);
  EXPECT_EQ(other_->get("k", soon()), "v");
  holder.kill();
  wait_until_erased("k");
}

TEST_F(TcpLeaseTest, AStoppedHoldersKeyIsGoneAfterItsTime) {
  const HolderProcess holder(server_.port(), 1s);
  EXPECT_EQ(other_->get("k", soon()), "v");
  holder.stop();
  wait_until_erased("k");
  EXPECT_TRUE(other_->set_with_lease("k", "mine", 1h, soon()));
}

TEST_F(TcpLeaseTest, ASilentHolderLearnsThatItLostItsKeys) {
  const auto holder = connect();
  holder->set_with_lease("long", "v", 1h, soon());
  holder->set_with_lease("k", "v", 50ms, soon());
  wait_until_erased("k");
  EXPECT_EQ(other_->try_get("long", soon()), std::nullopt);
  for (int call = 0; call < 2; ++call) {
    const auto error = error_of([&] { holder->set_with_lease("k", "v", 50ms, soon()); });
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
    EXPECT_TRUE(mentions(error, "disconnected") && mentions(error, "50 ms") &&
                mentions(error, "'k', 'long'"))
        << error.what();
  }
}

TEST_F(TcpLeaseTest, ASilentHolderThatWaitsLearnsIt) {
  const auto holder = connect();
  holder->set_with_lease("k", "v", 50ms, soon());
  const auto error = error_of([&] { holder->get("never", soon()); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_TRUE(mentions(error, "50 ms")) << error.what();
}

TEST_F(TcpLeaseTest, WhoHoldsNothingMayBeSilent) {
  EXPECT_TRUE(other_->set_with_lease("k", "v", 1h, soon()));
  const auto never = connect();
  EXPECT_FALSE(never->set_with_lease("k", "v", 50ms, soon()));
  // This client's time to live is longer; once it is over, the other's is too.
  const auto sign = connect();
  sign->set_with_lease("sign", "", 300ms, soon());
  wait_until_erased("sign");
  never->set("still", "connected", soon());
}

/// Whether `client` kept its key by other requests for twice its time to live.
bool lives_by_asking(Store& client, const std::string& key) {
  constexpr auto kTtl = 1s;
  const Deadline end = Deadline::after(2 * kTtl);
  try {
    EXPECT_TRUE(client.set_with_lease(key, "v", kTtl, soon()));
    while (!end.passed()) {
      EXPECT_TRUE(client.watch("nothing", 0, Deadline::after(20ms)).changes.empty());
      EXPECT_EQ(client.try_get(key, soon()), "v");
    }
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost) << error.what();
    return false;
  }
}

// On a busy machine the client itself may be late; such an attempt shows nothing and is repeated.
TEST_F(TcpLeaseTest, AnyRequestIsAHeartbeat) {
  bool lived = false;
  for (int attempt = 0; attempt < 10 && !lived; ++attempt)
    lived = lives_by_asking(*connect(), "k" + std::to_string(attempt));
  EXPECT_TRUE(lived);
}

}  // namespace
}  // namespace lockstep
