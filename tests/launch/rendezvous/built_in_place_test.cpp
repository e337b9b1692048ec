// Who serves the built-in meeting place.

#include "lockstep/launch/rendezvous/meeting/built_in_place.h"

#include <gtest/gtest.h>

#include "tests/support/held_port.h"

namespace lockstep::testing {
namespace {

using namespace std::chrono_literals;

/// Of a job of two nodes that meet at this port of the host.
RunOptions two_nodes_at(int port) {
  RunOptions options;
  options.num_nodes = 2;
  options.rdzv_backend = "c10d";
  options.master_addr = "127.0.0.1";
  options.master_port = port;
  return options;
}

TEST(BuiltInPlace, WhoServedAndJoinedOthersCanServeAgain) {
  const HeldPort port;
  const RunOptions options = two_nodes_at(port.number());
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

TEST(BuiltInPlace, WhoServesGoesOnWhereTheOtherPlaceIsDead) {
  const HeldPort port;
  const HeldPort nobody;
  const RunOptions options = two_nodes_at(port.number());
  const std::atomic<bool> stop{false};
  BuiltInPlace own(options, "");
  const Endpoint own_place = {"127.0.0.1", own.own_port()};
  const MeetingPlace::Candidates all = {{{"127.0.0.1", port.number()}, own_place}, 1};
  own.reopen(all, stop, Deadline::after(30s))->set("key", "value", Deadline::after(30s));
  const Endpoint dead = {"127.0.0.1", nobody.number()};
  EXPECT_THROW(own.reopen({{dead}}, stop, Deadline::after(50ms)), Error);
  const auto again = own.reopen({{own_place}, 0}, stop, Deadline::after(30s));
  EXPECT_EQ(again->get("key", Deadline::after(30s)), "value");
  EXPECT_TRUE(own.may_lead());
}

}  // namespace
}  // namespace lockstep::testing
