#pragma once
// The TCP connections of this process, and how to break them without touching the machine.

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

/// From now on the kernel drops whatever comes in on `fd`, the ends of connections included. Done
/// at both ends it is a cable that was cut; done at the end that lives on, a host that lost its
/// power.
void drop_all_input(int fd);

}  // namespace lockstep::testing
