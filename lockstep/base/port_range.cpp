#include "lockstep/base/port_range.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lockstep/base/env.h"
#include "lockstep/base/holder.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr const char* kVariable = "LOCKSTEP_PORT_RANGE";

struct AddressKind {
  bool any_port = false;
  bool loopback = false;
};

AddressKind kind_of(const sockaddr* address) {
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    return {v6->sin6_port == 0, IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) != 0};
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
  return {v4->sin_port == 0, ntohl(v4->sin_addr.s_addr) >> 24 == 127};
}

/// Both families store the port at the same offset.
void set_port(sockaddr_storage* address, int port) {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(static_cast<uint16_t>(port));
}

void set_reuse(int fd) {
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

/// SO_REUSEADDR is set afterwards: with it, bind() would succeed on a reserved port.
bool bind_within(const PortRange& range, int fd, const sockaddr* address, socklen_t size) {
  sockaddr_storage candidate{};
  std::memcpy(&candidate, address, size);
  const int count = range.last - range.first + 1;
  const int begin = static_cast<int>(static_cast<unsigned>(::getpid()) * 37 % count);
  for (int i = 0; i < count; ++i) {
    set_port(&candidate, range.first + (begin + i) % count);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&candidate), size) == 0) {
      set_reuse(fd);
      return true;
    }
    if (errno != EADDRINUSE) return false;
  }
  return false;
}

}  // namespace

PortRange parse_port_range(std::string_view text, const std::string& what) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: '{}' is no range of ports; write FIRST-LAST, as 29600-29699", what, text));
  }
  PortRange range;
  range.first = static_cast<int>(parse_int(text.substr(0, dash), 1, 65535, what));
  range.last = static_cast<int>(parse_int(text.substr(dash + 1), range.first, 65535, what));
  return range;
}

std::optional<PortRange> port_range() {
  const auto text = env(kVariable);
  if (!text) return std::nullopt;
  return parse_port_range(*text, fmt::format("environment variable {}", kVariable));
}

bool bind_port(int fd, const sockaddr* address, socklen_t size) {
  const AddressKind kind = kind_of(address);
  if (kind.any_port && !kind.loopback) {
    if (const auto range = port_range()) return bind_within(*range, fd, address, size);
  }
  set_reuse(fd);
  return ::bind(fd, address, size) == 0;
}

std::string port_taken_text(int port) {
  const auto range = port == 0 ? env(kVariable) : std::nullopt;
  if (range) return fmt::format("all ports of {}={} are in use; widen it", kVariable, *range);
  return fmt::format("port {} is already in use; choose another, or 0 for a free one", port);
}

ReservedPort::ReservedPort(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (!fd_) throw io_error("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (!bind_port(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address)) {
    if (port == 0 && errno == EADDRINUSE)
      throw Error(ErrorCode::kUnavailable, port_taken_text(port));
    if (errno != EADDRINUSE && errno != EACCES) throw io_error(fmt::format("bind port {}", port));
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--master_port: port {} is {}; choose another, or none for a free one",
                            port, errno == EACCES ? "for root only" : taken_by_text(port)));
  }
  port_ = local_port(fd_.get());
}

}  // namespace lockstep::inline internal
