#pragma once
// A LOCKSTEP_PORT_RANGE of ports that are free.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::testing {

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

/// The first of `count` ports that were free a moment ago, at most 5. They are below the range of
/// the kernel, and below the ports that jobs derive from their names.
inline int free_ports(int count) {
  constexpr int kBlock = 5, kBlocks = 400;
  if (count > kBlock) throw std::invalid_argument("more ports than a block has");
  for (int block = 0; block < kBlocks; ++block) {
    const int first = 10000 + (static_cast<int>(::getpid()) + block) % kBlocks * kBlock;
    try {
      std::vector<UniqueFd> held;
      for (int i = 0; i < count; ++i) held.push_back(tcp_listen(kAllAddresses, first + i));
      return first;
    } catch (const Error&) {
      continue;
    }
  }
  ADD_FAILURE() << "no " << count << " ports in a row are free";
  return 0;
}

inline std::string range_text(int first, int count) {
  return std::to_string(first) + "-" + std::to_string(first + count - 1);
}

}  // namespace lockstep::testing
