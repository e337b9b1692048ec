#include "lockstep/store/torch/client_origin.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "lockstep/base/socket.h"

namespace lockstep {
std::string host_of_client(const std::string& peer) {
  return peer.substr(0, peer.rfind(':'));
}

bool is_of_this_host(int fd) {
  if (is_loopback(fd)) return true;
  sockaddr_in6 mine{};  // large enough for IPv4's
  sockaddr_in6 theirs{};
  socklen_t size = sizeof mine;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &size) != 0) return false;
  size = sizeof theirs;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &size) != 0) return false;
  if (mine.sin6_family == AF_INET6) {
    return std::memcmp(&mine.sin6_addr, &theirs.sin6_addr, sizeof mine.sin6_addr) == 0;
  }
  return reinterpret_cast<const sockaddr_in&>(mine).sin_addr.s_addr ==
         reinterpret_cast<const sockaddr_in&>(theirs).sin_addr.s_addr;
}

}  // namespace lockstep
