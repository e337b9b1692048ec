#include "lockstep/base/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstdint>

#include "tests/support/held_port.h"

namespace lockstep::testing {
namespace {

/// A name with two addresses; this host has no route to the first.
TEST(Listening, AnAddressWithoutAWayThereDoesNotCount) {
  const HeldPort port;  // it has no listener
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(static_cast<uint16_t>(port.number()));
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  addrinfo second{};
  second.ai_family = AF_INET;
  second.ai_addr = reinterpret_cast<sockaddr*>(&own);
  second.ai_addrlen = sizeof own;
  addrinfo first{};
  first.ai_family = AF_MAX;
  first.ai_next = &second;
  const auto soon = [] { return Deadline::after(std::chrono::seconds(30)); };
  EXPECT_EQ(probe(&second, soon()), Listening::kNo);
  EXPECT_EQ(probe(&first, soon()), Listening::kNo);
  first.ai_next = nullptr;
  EXPECT_EQ(probe(&first, soon()), Listening::kSilent) << "nothing is known";
}

}  // namespace
}  // namespace lockstep::testing
