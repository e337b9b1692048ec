// How many unproved clients a server tolerates, and how often it warns about them.

#include "lockstep/store/tcp/strangers.h"
#include "lockstep/base/literals.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/descriptors.h"
#include "lockstep/base/socket.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/store/helpers.h"

namespace lockstep {
namespace {

using testing::soon;

const Strangers::Time kStrangersBegin{};

TEST(Strangers, WhoIsLateIsDropped) {
  Strangers strangers(5s);
  EXPECT_FALSE(strangers.due_in(kStrangersBegin));
  strangers.add(1, "a", kStrangersBegin);
  strangers.add(2, "b", kStrangersBegin + 1s);
  strangers.add(3, "b", kStrangersBegin + 1s);
  EXPECT_EQ(strangers.due_in(kStrangersBegin + 1s), 4s);
  strangers.forget(3);
  EXPECT_TRUE(strangers.overdue(kStrangersBegin + 4999ms).empty());
  const auto late = strangers.overdue(kStrangersBegin + 5s);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].id, 1U);
  EXPECT_FALSE(late[0].crowd);
  EXPECT_TRUE(strangers.holds(2));
}

TEST(Strangers, AHostKeepsNoMoreThanItsShare) {
  Strangers strangers(5s);
  for (uint64_t id = 0; id < 200; ++id) strangers.add(id, "crowd", kStrangersBegin);
  for (uint64_t id = 200; id < 300; ++id) strangers.add(id, "", kStrangersBegin);  // our own
  strangers.add(300, "other", kStrangersBegin);
  EXPECT_TRUE(strangers.overdue(kStrangersBegin + 4s).empty()) << "there is room for all";
  for (uint64_t id = 301; id < Strangers::kMany + 200; ++id) {
    strangers.add(id, std::to_string(id), kStrangersBegin);
  }
  EXPECT_TRUE(strangers.overdue(kStrangersBegin + 999ms).empty())
      << "a host of many ranks is let do its handshakes";
  ASSERT_TRUE(strangers.due_in(kStrangersBegin));
  EXPECT_LE(*strangers.due_in(kStrangersBegin), 100ms);
  const auto dropped = strangers.overdue(kStrangersBegin + 1s);
  ASSERT_EQ(dropped.size(), 200U - Strangers::kMostOfAHost);
  EXPECT_EQ(dropped.front().id, 0U);
  EXPECT_TRUE(dropped.front().crowd);
  EXPECT_TRUE(strangers.holds(199) && strangers.holds(200) && strangers.holds(300));
}

TEST(Strangers, ThereIsAnEnd) {
  Strangers strangers(5s);
  for (uint64_t id = 0; id < Strangers::kMost; ++id) {
    ASSERT_FALSE(strangers.full());
    strangers.add(id, std::to_string(id), kStrangersBegin);
  }
  EXPECT_TRUE(strangers.full());
  strangers.forget(7);
  EXPECT_FALSE(strangers.full());
}

TEST(Refusals, OneLineAHostAndPeriod) {
  Refusals refusals;
  EXPECT_EQ(refusals.note("a", kStrangersBegin), "");
  EXPECT_FALSE(refusals.note("a", kStrangersBegin));
  EXPECT_EQ(refusals.note("b", kStrangersBegin), "");
  EXPECT_FALSE(refusals.note("a", kStrangersBegin + Refusals::kPeriod - 1s));
  EXPECT_EQ(refusals.note("a", kStrangersBegin + Refusals::kPeriod),
            " (2 more of that host since the last such line)");
  refusals.forget("a");
  EXPECT_EQ(refusals.note("a", kStrangersBegin + Refusals::kPeriod), "") << "it had been let in";
}

TEST(Refusals, AsManyHostsAsThereMayBeCannotFillADisk) {
  Refusals refusals;
  size_t lines = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (refusals.note(std::to_string(i), kStrangersBegin)) ++lines;
  }
  EXPECT_EQ(lines, Refusals::kMostHosts);
  EXPECT_TRUE(refusals.note("later", kStrangersBegin + Refusals::kPeriod));
}

/// A client whose connection the server has closed has been refused.
void await_refusal(const Endpoint& server) {
  const UniqueFd fd = tcp_connect(server, soon());
  const std::string_view request = "GET / HTTP/1.1\r\n\r\n";
  send_all(fd.get(), request.data(), request.size(), soon(), "server");
  std::string bytes(1 << 16, ' ');
  EXPECT_THROW(recv_all(fd.get(), bytes.data(), bytes.size(), soon(), "server"), Error);
}

TEST(TcpStoreServer, ManyForeignRequestsOfAHostAreOneLine) {
  const TcpStoreServer server({.secret = "secret"});
  const Endpoint endpoint{"127.0.0.1", server.port()};
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 50; ++i) await_refusal(endpoint);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST(TcpStoreServer, OfManySilentStrangersAHostKeepsAFew) {
  // Its time for a handshake is far longer than this test.
  const TcpStoreServer server({.secret = "secret", .handshake_limit = 600s});
  const Endpoint endpoint{"127.0.0.1", server.port()};
  constexpr int kSilent = static_cast<int>(Strangers::kMany) + 36;
  raise_soft_descriptor_limit();  // both ends of each connection are this process
  std::vector<UniqueFd> silent;
  for (int i = 0; i < kSilent; ++i) silent.push_back(tcp_connect(endpoint, soon()));
  for (int i = 0; i < 36; ++i) {
    std::string bytes(1 << 16, ' ');
    EXPECT_THROW(recv_all(silent[static_cast<size_t>(i)].get(), bytes.data(), bytes.size(), soon(),
                          "server"),
                 Error);
  }
  connect_tcp_store(endpoint, "secret", soon())->set("k", "v", soon());
}

}  // namespace
}  // namespace lockstep
