#include "lockstep/store/tcp/shortcut.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include "lockstep/base/namespaces.h"
#include "lockstep/base/socket.h"

namespace lockstep::inline internal {
namespace {

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

/// `host`: a numeric address, as the kernel writes it.
Name shortcut_name(const std::string& host, int port) {
  const std::string text = "lockstep-store/" + to_string(Endpoint{host, port});
  Name name;
  name.address.sun_family = AF_UNIX;
  // The first byte stays 0: the abstract namespace. Names that do not fit cannot occur.
  const size_t length = std::min(text.size(), sizeof name.address.sun_path - 1);
  std::memcpy(name.address.sun_path + 1, text.data(), length);
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return name;
}

std::optional<std::string> listening_address(int listener) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size) != 0) return std::nullopt;
  std::string text = in_figures(reinterpret_cast<sockaddr*>(&own));
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

/// `host` in the kernel's notation, if it is a numeric address without a zone.
std::optional<std::string> literal(const std::string& host) {
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1)
    return in_figures(reinterpret_cast<sockaddr*>(&v4));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1)
    return in_figures(reinterpret_cast<sockaddr*>(&v6));
  return std::nullopt;
}

/// Whether packets to the address come from that address itself.
bool is_own(const std::string& address) {
  if (address == "::1" || address.starts_with("127.")) return true;
  try {
    return local_address_towards(address) == address;
  } catch (const std::exception&) {
    return false;  // no route
  }
}

UniqueFd try_shortcut(const Name& name, uid_t user) {
  // Non-blocking: if the backlog is full, TCP can wait better.
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), name.get(), name.size) != 0 || !is_process_of(user, fd.get()))
    return {};
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd;
}

}  // namespace

UniqueFd listen_shortcut(int listener) {
  const auto host = listening_address(listener);
  if (!host) return {};
  const Name name = shortcut_name(*host, local_port(listener));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::bind(fd.get(), name.get(), name.size) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return {};
  return fd;
}

UniqueFd connect_shortcut(const Endpoint& place, uid_t user) {
  const auto host = literal(place.host);
  if (!host || !is_own(*host)) return {};
  if (UniqueFd fd = try_shortcut(shortcut_name(*host, place.port), user)) return fd;
  // A server on all addresses; one on IPv6 serves IPv4 too, or another server would have that port.
  const bool v6 = host->find(':') != std::string::npos;
  if (!v6) {
    if (UniqueFd fd = try_shortcut(shortcut_name("0.0.0.0", place.port), user)) return fd;
  }
  return try_shortcut(shortcut_name("::", place.port), user);
}

}  // namespace lockstep::inline internal
