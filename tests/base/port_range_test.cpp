#include "lockstep/base/port_range.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <set>
#include <vector>

#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep {
namespace {

/// Sets LOCKSTEP_PORT_RANGE during its lifetime.
class RangeVariable {
 public:
  explicit RangeVariable(const std::string& text) {
    ::setenv("LOCKSTEP_PORT_RANGE", text.c_str(), 1);
  }
  ~RangeVariable() { ::unsetenv("LOCKSTEP_PORT_RANGE"); }
  RangeVariable(const RangeVariable&) = delete;
  RangeVariable& operator=(const RangeVariable&) = delete;
};

/// The first of three ports that were free a moment ago, below the range of the kernel.
int three_free_ports() {
  for (int first = 12000 + static_cast<int>(::getpid() % 2000) * 3; first < 32000; first += 3) {
    try {
      std::vector<UniqueFd> held;
      for (int i = 0; i < 3; ++i) held.push_back(tcp_listen(kAllAddresses, first + i));
      return first;
    } catch (const Error&) {
      continue;
    }
  }
  ADD_FAILURE() << "no three ports in a row are free";
  return 0;
}

std::string text_of(int first, int count) {
  return std::to_string(first) + "-" + std::to_string(first + count - 1);
}

TEST(PortRange, IsTwoNumbers) {
  const PortRange range = parse_port_range("29600-29699", "--port_range");
  EXPECT_EQ(range.first, 29600);
  EXPECT_EQ(range.last, 29699);
  EXPECT_EQ(parse_port_range("5-5", "x").last, 5);
  for (const char* wrong : {"", "29600", "29600-", "-29600", "9-8", "0-9", "1-65536", "a-b"})
    EXPECT_THROW(parse_port_range(wrong, "--port_range"), Error) << wrong;
}

TEST(PortRange, AllThatNobodyNamesAreOfIt) {
  const int first = three_free_ports();
  const RangeVariable variable(text_of(first, 3));
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
              "all ports of LOCKSTEP_PORT_RANGE=" + text_of(first, 3) + " are in use; widen it");
  }
}

TEST(PortRange, LoopbackAndNamedPortsAreNotOfIt) {
  const int first = three_free_ports();
  const RangeVariable variable(text_of(first, 1));
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
