// Who serves the built-in meeting place.

#include "lockstep/launch/rendezvous/meeting/built_in_place.h"

#include <gtest/gtest.h>

#include "tests/support/held_port.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

TEST(BuiltInPlace, WhoServedAndJoinedOthersCanServeAgain) {
  const HeldPort port;
  RunOptions options;
  options.num_nodes = 2;
  options.rdzv_backend = "c10d";
  options.master_addr = "127.0.0.1";
  options.master_port = port.number();
  const std::atomic<bool> stop{false};

  BuiltInPlace own(options, "");
  const Endpoint endpoint = {"127.0.0.1", port.number()};
  const MeetingPlace::Candidates all = {{endpoint, {"127.0.0.1", own.own_port()}}, 1};
  for (int round = 0; round < 2; ++round) {
    {
      BuiltInPlace other(options, "");
      const auto theirs = other.open(Deadline::after(30s));
      ASSERT_TRUE(other.may_lead());
      const auto store = own.reopen({{endpoint}}, stop, Deadline::after(30s));
      EXPECT_FALSE(own.may_lead());
    }
    const auto store = own.reopen(all, stop, Deadline::after(30s));
    ASSERT_TRUE(store);
    EXPECT_TRUE(own.may_lead()) << "round " << round;
  }
}

}  // namespace
}  // namespace lockstep::testing
