#include "lockstep/world/own_address.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>

#include "lockstep/world/identity.h"

namespace lockstep {
namespace {

/// The bytes of an address, without port and scope; empty for other families.
std::string address_bytes(const sockaddr* address) {
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof v4};
  }
  if (address->sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    return {reinterpret_cast<const char*>(&v6), sizeof v6};
  }
  return "";
}

bool some_interface_has(const std::string& bytes) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (address_bytes(each->ifa_addr) == bytes) return true;
  }
  return false;
}

}  // namespace

bool is_own_address(const std::string& host) {
  if (is_loopback(host)) return true;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    const std::string bytes = address_bytes(each->ai_addr);
    if (!bytes.empty() && some_interface_has(bytes)) return true;
  }
  return false;
}

}  // namespace lockstep
