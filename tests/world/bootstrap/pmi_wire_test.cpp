#include "lockstep/world/bootstrap/pmi_wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "lockstep/base/literals.h"
#include "lockstep/base/unique_fd.h"
#include "tests/support/error_of.h"

namespace lockstep {
namespace {

TEST(PmiLine, IsNamesAndValues) {
  const auto words = parse_pmi_line("cmd=get_result rc=0 msg=not so good value=a:b|c");
  EXPECT_EQ(words.at("cmd"), "get_result");
  EXPECT_EQ(words.at("rc"), "0");
  EXPECT_EQ(words.at("value"), "a:b|c");
  for (const char* bad : {"", "rc=0", "cmd", "cmd=x word", "cmd=x =y"})
    EXPECT_EQ(error_of([&] { parse_pmi_line(bad); }).code(), ErrorCode::kCorrupt) << bad;
}

/// Both ends of a connection.
struct PmiPair {
  PmiPair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    client = UniqueFd(ends[0]);
    manager = UniqueFd(ends[1]);
  }
  void answer(const std::string& line) const {
    ASSERT_EQ(::write(manager.get(), line.data(), line.size()), ssize_t(line.size()));
  }
  UniqueFd client, manager;
};

TEST(PmiWire, SaysWhatTheManagerRefuses) {
  const PmiPair pair;
  PmiWire wire(pair.client.get());
  pair.answer("cmd=response_to_init rc=-1\n");
  EXPECT_EQ(error_of([&] { wire.init(Deadline::after(30s)); }).code(), ErrorCode::kUnavailable);
  pair.answer("cmd=something_else\n");
  EXPECT_EQ(error_of([&] { wire.barrier(Deadline::after(30s)); }).code(), ErrorCode::kCorrupt);
}

TEST(PmiWire, AsksWhoItIsAtAPort) {
  const PmiPair pair;
  PmiWire wire(pair.client.get());
  pair.answer("cmd=initack\ncmd=set size=4\ncmd=set rank=3\ncmd=set debug=0\n");
  const auto own = wire.introduce(7, Deadline::after(30s));
  EXPECT_EQ(own.rank, 3);
  EXPECT_EQ(own.size, 4);
  std::array<char, 64> said{};
  ASSERT_GT(::read(pair.manager.get(), said.data(), said.size()), 0);
  EXPECT_STREQ(said.data(), "cmd=initack pmiid=7\n");
  for (const char* bad :
       {"cmd=set size=4\ncmd=set rank=4\n", "cmd=set size=4\ncmd=set size=4\n",
        "cmd=set size=0\ncmd=set rank=0\n", "cmd=set size=2x\ncmd=set rank=0\n"}) {
    pair.answer(std::string("cmd=initack\n") + bad + "cmd=set debug=0\n");
    EXPECT_EQ(error_of([&] { wire.introduce(7, Deadline::after(30s)); }).code(),
              ErrorCode::kCorrupt)
        << bad;
  }
}

TEST(PmiWire, WaitsForAnAnswerAsLongAsItMay) {
  const PmiPair pair;
  PmiWire wire(pair.client.get());
  pair.answer("cmd=barr");  // half a line
  EXPECT_EQ(error_of([&] { wire.barrier(Deadline::after(50ms)); }).code(), ErrorCode::kTimeout);
}

TEST(PmiWire, NoticesAManagerThatIsGoneOrTalksForEver) {
  PmiPair pair;
  PmiWire wire(pair.client.get());
  pair.answer(std::string(9000, 'x'));
  EXPECT_EQ(error_of([&] { wire.barrier(Deadline::after(30s)); }).code(), ErrorCode::kCorrupt);
  PmiPair other;
  PmiWire lost(other.client.get());
  ::shutdown(other.manager.get(), SHUT_WR);
  EXPECT_EQ(error_of([&] { lost.barrier(Deadline::after(30s)); }).code(), ErrorCode::kIo);
}

TEST(PmiWire, AManagerThatIsGoneIsAnErrorAndNoSignal) {
  PmiPair pair;
  PmiWire wire(pair.client.get());
  pair.manager.reset();
  EXPECT_EQ(error_of([&] { wire.barrier(Deadline::after(30s)); }).code(), ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace lockstep
