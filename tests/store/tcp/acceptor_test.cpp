// Clients that come in, and those that have to wait.

#include "lockstep/store/tcp/acceptor.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include <thread>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::soon;

TEST(Acceptor, TheHostOfAPeerIsItsNameWithoutThePort) {
  EXPECT_EQ(host_of_peer("10.0.0.1:80"), "10.0.0.1");
  EXPECT_EQ(host_of_peer("[fe80::1]:80"), "[fe80::1]");
  EXPECT_EQ(host_of_peer("process 7 of this host"), "this host");
}

class AcceptorTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kId = 5;

  AcceptorTest() { acceptor_.listen_on(listener_.get(), kId); }

  UniqueFd connect() const {
    return tcp_connect({"127.0.0.1", local_port(listener_.get())}, soon());
  }
  /// True if the acceptor listens, and a client is there within the time.
  bool hears(int wait_ms) const {
    epoll_event event{};
    return ::epoll_wait(epoll_.get(), &event, 1, wait_ms) == 1 && event.data.u64 == kId;
  }
  bool accept() {
    return acceptor_.accept(listener_.get(), [&](UniqueFd fd) { came_.push_back(std::move(fd)); });
  }
  void wait_for_the_end_of_the_pause() {
    while (acceptor_.pause_left() > 0ms) std::this_thread::sleep_for(*acceptor_.pause_left());
    acceptor_.resume();
  }

  UniqueFd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  UniqueFd listener_ = tcp_listen("127.0.0.1", 0);
  Strangers strangers_{1h};
  Acceptor acceptor_{epoll_.get(), strangers_};
  std::vector<UniqueFd> came_;
};

TEST_F(AcceptorTest, AllThatWaitComeIn) {
  const UniqueFd first = connect();
  const UniqueFd second = connect();
  EXPECT_TRUE(hears(30'000));
  EXPECT_FALSE(accept());
  EXPECT_EQ(came_.size(), 2U);
  EXPECT_FALSE(acceptor_.pause_left());
  EXPECT_FALSE(hears(0));
}

TEST_F(AcceptorTest, TooManyStrangersMakeAClientWait) {
  for (uint64_t id = 0; id < Strangers::kMost; ++id) strangers_.add(id, "", {});
  const UniqueFd client = connect();
  EXPECT_TRUE(hears(30'000));
  EXPECT_FALSE(accept()) << "it may be for a moment";
  EXPECT_FALSE(hears(0)) << "it does not listen now";
  wait_for_the_end_of_the_pause();
  EXPECT_TRUE(hears(30'000));
  EXPECT_TRUE(accept()) << "the client has waited for the whole pause";
  strangers_.forget(0);
  wait_for_the_end_of_the_pause();
  EXPECT_FALSE(accept());
  EXPECT_EQ(came_.size(), 1U);
}

}  // namespace
}  // namespace lockstep
