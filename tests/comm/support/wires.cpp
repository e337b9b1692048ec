#include "tests/comm/support/wires.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

/// The port of one end of `fd`; 0 if it is no connected TCP socket.
int port_of(int fd, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (get(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return address.sin_family == AF_INET ? ntohs(address.sin_port) : 0;
}

}  // namespace

std::vector<Wire> wires() {
  std::vector<Wire> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    Wire wire;
    wire.fd = std::stoi(entry.path().filename().string());
    wire.local_port = port_of(wire.fd, ::getsockname);
    wire.remote_port = port_of(wire.fd, ::getpeername);
    struct stat about {};
    // By its path: ThreadSanitizer reports fstat() of another thread's new descriptor as a race.
    if (wire.remote_port == 0 || ::stat(entry.path().c_str(), &about) != 0) continue;
    wire.inode = about.st_ino;
    all.push_back(wire);
  }
  return all;
}

void drop_all_input(int fd) {
  sock_filter nothing_passes = {BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program = {1, &nothing_passes};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    throw io_error("SO_ATTACH_FILTER");
}

}  // namespace lockstep::testing
