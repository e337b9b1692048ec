#pragma once
// The TCP connections of this process, and a way to break them without changing the machine.

#include <sys/types.h>

#include <vector>

namespace lockstep::testing {

struct Wire {
  int fd = -1;
  ino_t inode = 0;
  int local_port = 0;
  int remote_port = 0;
};

/// Every connected TCP socket that this process has open.
std::vector<Wire> wires();

/// From now on the kernel drops all input on `fd`, including ends of connections. At both ends it
/// is a cable that was cut; at the surviving end only, a host that lost its power.
void drop_all_input(int fd);

}  // namespace lockstep::testing
