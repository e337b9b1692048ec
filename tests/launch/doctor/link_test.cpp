// One doctor tries the ports of another over loopback.

#include <gtest/gtest.h>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/launch/doctor/links.h"
#include "tests/support/held_port.h"

namespace lockstep::doctor {
namespace {

const std::string kCookie(kCookieBytes, 'c');
const std::vector<std::string> kNames = {"first", "second"};

TEST(DoctorLink, ReachesMeasuresAndKnowsWhoAnswers) {
  LinkServer server(kCookie, 1);
  const ListeningPort port = server.open("127.0.0.1", 0);
  ASSERT_EQ(port.error, "");
  ASSERT_GT(port.number, 0);
  server.start();
  const LinkTarget right{1, "127.0.0.1", 0, port.number};
  const LinkTarget wrong{0, "127.0.0.1", 0, port.number};
  EXPECT_EQ(try_links({right, wrong}, kCookie, kNames, 30s),
            (std::vector<std::string>{"", "leads to second"}));
  const LinkSpeed speed = measure_link(right, kCookie, 50ms);
  EXPECT_GT(speed.latency_us, 0);
  EXPECT_GT(speed.gbit_s, 0);
}

TEST(DoctorLink, StrangersAreClosed) {
  LinkServer server(kCookie, 0);
  const ListeningPort port = server.open("127.0.0.1", 0);
  server.start();
  const std::string other(kCookieBytes, 'x');
  EXPECT_EQ(try_links({{0, "127.0.0.1", 0, port.number}}, other, kNames, 30s)[0],
            "something else answers there");
}

TEST(DoctorLink, SaysWhyAPortIsNotReached) {
  const testing::HeldPort held;  // nobody listens
  const auto problems =
      try_links({{0, "127.0.0.1", 0, held.number()}, {0, "no-such-host.invalid", 0, 1}}, kCookie,
                kNames, 30s);
  EXPECT_EQ(problems[0], "refused: a firewall rejects, or the name leads elsewhere");
  EXPECT_NE(problems[1], "");
}

TEST(DoctorLink, APortThatIsTakenIsNamed) {
  LinkServer server(kCookie, 0);
  const UniqueFd other = tcp_listen("127.0.0.1", 0);
  const ListeningPort port = server.open("127.0.0.1", local_port(other.get()));
  EXPECT_EQ(port.number, 0);
  EXPECT_NE(port.error.find("already in use"), std::string::npos) << port.error;
}

}  // namespace
}  // namespace lockstep::doctor
