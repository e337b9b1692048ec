#include "lockstep/base/addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "lockstep/base/env.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
            : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

Endpoint parse_endpoint(const std::string& text, int default_port) {
  const auto refuse = [&](const char* why) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("endpoint '{}': {}; write host:port or [v6]:port", text, why));
  };
  std::string host = text;
  std::string port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string::npos) throw refuse("no ']'");
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
    if (!port.empty() && port.front() != ':') throw refuse("only a port may follow ']'");
    if (!port.empty()) port.erase(0, 1);
  } else if (const size_t colon = text.find(':'); colon == text.rfind(':')) {
    // More than one colon: an IPv6 address without brackets, so there is no port.
    host = text.substr(0, colon);
    port = colon == std::string::npos ? "" : text.substr(colon + 1);
  }
  if (host.empty()) throw refuse("no host");
  if (host.find('/') != std::string::npos) throw refuse("no host has a '/' in its name");
  if (port.empty()) return {host, default_port};
  return {host, static_cast<int>(parse_int(port, 0, 65535, "port of endpoint '" + text + "'"))};
}

AddressList look_up(const std::string& host, int port, std::string* problem, int flags,
                    int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failure = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                    std::to_string(port).c_str(), &hints, &list);
  if (failure != 0) *problem = ::gai_strerror(failure);
  return {failure == 0 ? list : nullptr, &::freeaddrinfo};
}

AddressList look_up(const std::string& host, int port, int flags) {
  std::string problem;
  AddressList list = look_up(host, port, &problem, flags);
  if (list) return list;
  throw Error(ErrorCode::kUnavailable, fmt::format("cannot resolve host '{}': {}", host, problem));
}

bool can_resolve(const std::string& host) {
  std::string problem;
  return look_up(host, 0, &problem) != nullptr;
}

std::string in_figures(const sockaddr* address) {
  const void* bytes = nullptr;
  if (address != nullptr && address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address != nullptr && address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (bytes == nullptr) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(address->sa_family, bytes, text.data(), text.size());
  return text.data();
}

std::string address_text(const sockaddr* address, socklen_t size, bool with_port) {
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return "local socket";
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown address";
  }
  // A listener for both families sees IPv4 peers as IPv4-mapped IPv6 addresses.
  constexpr std::string_view kMapped = "::ffff:";
  std::string text = host;
  if (text.starts_with(kMapped) && text.find('.') != std::string::npos) {
    text.erase(0, kMapped.size());
  }
  return with_port ? to_string(Endpoint{text, std::stoi(port)}) : text;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw io_error("list the network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> all;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    const std::string address = in_figures(each->ifa_addr);
    if (!address.empty()) all.push_back({each->ifa_name, address, (each->ifa_flags & IFF_UP) != 0});
  }
  return all;
}

namespace {

bool is_any_of_interfaces(const std::set<std::string>& addresses) {
  try {
    const auto own = interface_addresses();
    return std::any_of(own.begin(), own.end(), [&](const InterfaceAddress& one) {
      return addresses.contains(one.address);
    });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool is_interface_address(const std::string& address) {
  return is_any_of_interfaces({address});
}

bool is_own_address(const std::string& host) {
  if (host.empty()) return false;
  if (is_loopback(host)) return true;
  std::string problem;
  const AddressList list = look_up(host, 0, &problem);
  if (!list) return false;
  std::set<std::string> addresses;
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    const std::string address = in_figures(each->ai_addr);
    // Debian's installer gives 127.0.1.1 to a host's own name. No interface has that address.
    if (is_loopback(address)) return true;
    addresses.insert(address);
  }
  return is_any_of_interfaces(addresses);
}

std::string local_address_towards(const std::string& host) {
  // Connecting a datagram socket sends nothing; it only queries the routing table.
  const AddressList list = look_up(host, 9);
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    const UniqueFd fd(::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd || ::connect(fd.get(), each->ai_addr, each->ai_addrlen) != 0) continue;
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw io_error("getsockname");
    return address_text(reinterpret_cast<sockaddr*>(&address), size, false);
  }
  throw io_error("find the route to " + host);
}

}  // namespace lockstep::inline internal
