#include "lockstep/base/port_range.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "tests/support/port_range.h"

namespace lockstep {
namespace {

using testing::free_ports;
using testing::range_text;
using testing::RangeVariable;

TEST(PortRange, IsTwoNumbers) {
  const PortRange range = parse_port_range("29600-29699", "--port_range");
  EXPECT_EQ(range.first, 29600);
  EXPECT_EQ(range.last, 29699);
  EXPECT_EQ(parse_port_range("5-5", "x").last, 5);
  for (const char* wrong : {"", "29600", "29600-", "-29600", "9-8", "0-9", "1-65536", "a-b"})
    EXPECT_THROW(parse_port_range(wrong, "--port_range"), Error) << wrong;
}

TEST(PortRange, AllThatNobodyNamesAreOfIt) {
  const int first = free_ports(3);
  const RangeVariable variable(range_text(first, 3));
  std::vector<UniqueFd> listeners;
  std::set<int> ports;
  for (int i = 0; i < 3; ++i) {
    listeners.push_back(tcp_listen(i == 0 ? "0.0.0.0" : kAllAddresses, 0));
    ports.insert(local_port(listeners.back().get()));
  }
  EXPECT_EQ(ports, (std::set<int>{first, first + 1, first + 2}));
  try {
    tcp_listen(kAllAddresses, 0);
    ADD_FAILURE() << "a fourth of three";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(std::string(error.what()),
              "all ports of LOCKSTEP_PORT_RANGE=" + range_text(first, 3) + " are in use; widen it");
  }
}

TEST(PortRange, LoopbackAndNamedPortsAreNotOfIt) {
  const int first = free_ports(3);
  const RangeVariable variable(range_text(first, 1));
  EXPECT_NE(local_port(tcp_listen("127.0.0.1", 0).get()), first);
  EXPECT_EQ(local_port(tcp_listen(kAllAddresses, first + 1).get()), first + 1);
}

TEST(PortRange, OneThatIsNoneIsNamed) {
  const RangeVariable variable("29600");
  try {
    tcp_listen(kAllAddresses, 0);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("LOCKSTEP_PORT_RANGE: '29600'"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep
