#include "lockstep/world/addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>

#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

bool is_link_local(const std::string& address) {
  return address.starts_with("169.254.") || address.starts_with("fe80:");
}

bool is_bridge(const std::string& interface) {
  constexpr std::array kPrefixes = {"docker", "br-", "virbr", "veth", "cni", "flannel", "podman"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return interface.starts_with(prefix); });
}

/// Nothing if there is no route or no such name.
void append_route(const std::string& host, std::vector<std::string>* out) {
  try {
    out->push_back(local_address_towards(host));
  } catch (const Error&) {
    return;
  }
}

[[noreturn]] void no_address(const AddressWish& wish, const std::vector<InterfaceAddress>& all) {
  std::vector<std::string> names;
  for (const InterfaceAddress& each : all) names.push_back(each.interface);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  throw Error(ErrorCode::kInvalidArgument,
              wish.variable.empty()
                  ? "this host has no address that another host can reach; set LOCKSTEP_ADDRESS"
                  : fmt::format("environment variable {}: '{}' names no interface with an address "
                                "that another host can reach; there are {}",
                                wish.variable, wish.value, fmt::join(names, ", ")));
}

}  // namespace

bool InterfaceRule::takes(const std::string& interface) const {
  const bool named = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return whole ? interface == name : interface.starts_with(name);
  });
  return names.empty() || named != others;
}

InterfaceRule parse_interface_rule(const std::string& text) {
  InterfaceRule rule;
  std::string_view rest = text;
  rule.others = rest.starts_with('^');
  if (rule.others) rest.remove_prefix(1);
  rule.whole = rest.starts_with('=');
  if (rule.whole) rest.remove_prefix(1);
  for (const std::string& name : split(std::string(rest), ','))
    if (!name.empty()) rule.names.push_back(name);
  return rule;
}

AddressWish wished_address(const Environment& environment) {
  for (const char* name :
       {"LOCKSTEP_ADDRESS", "LOCKSTEP_IFNAME", "HCCL_IF_IP", "HCCL_SOCKET_IFNAME"}) {
    const auto value = value_in(environment, name);
    if (value.empty()) continue;
    const std::string_view variable = name;
    if (variable == "LOCKSTEP_IFNAME") return {name, value, "", {.names = {value}, .whole = true}};
    if (variable == "HCCL_SOCKET_IFNAME") return {name, value, "", parse_interface_rule(value)};
    return {name, value, value, {}};
  }
  return {};
}

std::vector<std::string> order_addresses(const std::vector<InterfaceAddress>& all,
                                         const std::vector<std::string>& towards,
                                         const InterfaceRule& wanted) {
  const auto place = [&](const InterfaceAddress& each) {
    const auto found = std::find(towards.begin(), towards.end(), each.address);
    const bool v6 = each.address.find(':') != std::string::npos;
    return std::tuple(is_bridge(each.interface) && found == towards.end(), found - towards.begin(),
                      v6);
  };
  std::vector<InterfaceAddress> usable;
  for (const InterfaceAddress& each : all) {
    const bool named = !wanted.names.empty() && !wanted.others;
    if ((is_loopback(each.address) && !named) || is_link_local(each.address)) continue;
    if (wanted.takes(each.interface)) usable.push_back(each);
  }
  std::stable_sort(usable.begin(), usable.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  std::vector<std::string> addresses;
  for (const InterfaceAddress& each : usable) addresses.push_back(each.address);
  return addresses;
}

std::vector<std::string> own_addresses(const Environment& environment,
                                       const std::vector<std::string>& launcher_hosts) {
  const AddressWish wish = wished_address(environment);
  // LOCKSTEP_ADDRESS may be another host's address, behind NAT. HCCL binds HCCL_IF_IP.
  if (wish.variable == "HCCL_IF_IP" && !is_own_address(wish.address)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("environment variable HCCL_IF_IP: {} is not an address of this host; "
                            "it is one for each host",
                            wish.address));
  }
  if (!wish.address.empty()) return {wish.address};
  std::vector<std::string> towards;
  for (const std::string& host : launcher_hosts) append_route(host, &towards);
  append_route("192.0.2.1", &towards);  // unassigned (RFC 5737), so it takes the default route
  auto all = interface_addresses();
  std::erase_if(all, [](const InterfaceAddress& each) { return !each.up; });
  auto addresses = order_addresses(all, towards, wish.interfaces);
  if (addresses.empty()) no_address(wish, all);
  return addresses;
}

std::string listen_host(const std::string& host) {
  if (!is_loopback(host)) return kAllAddresses;
  return host == "localhost" ? "127.0.0.1" : host;
}

std::string host_for_itself(const std::string& host) {
  const std::string listening = listen_host(host);
  return listening == kAllAddresses ? "127.0.0.1" : listening;
}

std::vector<std::string> launcher_hosts(const Environment& environment) {
  std::vector<std::string> hosts;
  // "12.0;tcp://10.0.0.1,192.168.0.1:4000;tcp6://..."
  const auto uri = value_in(environment, "OMPI_MCA_orte_hnp_uri");
  for (const std::string& part : split(uri, ';')) {
    if (!part.starts_with("tcp://")) continue;
    const auto list = part.substr(6, part.rfind(':') - 6);
    for (const std::string& host : split(list, ','))
      if (!host.empty() && hosts.size() < 8) hosts.push_back(host);
  }
  const auto srun = value_in(environment, "SLURM_LAUNCH_NODE_IPADDR");
  if (!srun.empty()) hosts.push_back(srun);
  return hosts;
}

std::string wait_for_name(const std::string& host, Deadline deadline, const NameWait& how) {
  std::string short_name = host.substr(0, host.find('.'));
  const auto began = std::chrono::steady_clock::now();
  const auto patience = Deadline::after(how.report_after);
  bool reported = false;
  while (true) {
    const bool last = deadline.passed();  // even a slow lookup is not the only one
    if (how.known(host)) return host;
    if (short_name != host && how.known(short_name)) return short_name;
    if (last) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began;
      throw Error(ErrorCode::kTimeout,
                  fmt::format("host '{}', where the ranks meet, is still unknown here after {:.1f} "
                              "s: check the name, or give its address as a number",
                              host, spent.count()));
    }
    if (patience.passed() && !reported) {
      log_info(fmt::format("waits for the name of host '{}', which is not known here yet", host));
      reported = true;
    }
    std::this_thread::sleep_for(std::min(how.pause, deadline.left()));
  }
}

}  // namespace lockstep::inline internal
