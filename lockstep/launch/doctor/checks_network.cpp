// Names, ports, links and firewalls.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "lockstep/base/addresses.h"
#include "lockstep/launch/doctor/checks.h"

namespace lockstep::doctor {
namespace {

std::string outside_address(const HostFacts& facts) {
  for (const std::string& address : facts.addresses) {
    if (!is_loopback(address)) return address;
  }
  return "ADDRESS";
}

std::string mend_hosts_file(const HostFinding& other, const std::string& name) {
  return fmt::format("in /etc/hosts there, in place of the present line: {} {}",
                     outside_address(other.facts), name);
}

/// Checks how `host` resolves the name of `other`.
void check_lookup(const HostFinding& host, const HostFinding& other, const NameLookup& lookup,
                  bool many, RowBuilder* rows) {
  const bool itself = &host == &other;
  if (!lookup.error.empty()) {
    rows->add(itself ? CheckResult::kWarn : CheckResult::kFail, host.name,
              fmt::format("cannot resolve '{}': {}", lookup.name, lookup.error),
              mend_hosts_file(other, lookup.name));
    return;
  }
  if (lookup.addresses.empty()) return;
  const std::string& address = lookup.addresses[0];
  const auto& own = other.facts.addresses;
  const bool elsewhere = host.facts.host_id != other.facts.host_id;
  if (is_loopback(address)) {
    if (!many || (!itself && !elsewhere)) return;
    rows->add(itself ? CheckResult::kWarn : CheckResult::kFail, host.name,
              itself ? fmt::format("its own name '{}' is {}; a program that tells others this "
                                   "address cannot be reached",
                                   lookup.name, address)
                     : fmt::format("'{}' is {}, which is the host itself", lookup.name, address),
              mend_hosts_file(other, lookup.name));
  } else if (std::find(own.begin(), own.end(), address) == own.end()) {
    rows->add(CheckResult::kWarn, host.name,
              fmt::format("'{}' is {}, which is no address of that host ({})", lookup.name, address,
                          outside_address(other.facts)),
              mend_hosts_file(other, lookup.name));
  }
  if (lookup.seconds > 1) {
    rows->add(CheckResult::kWarn, host.name,
              fmt::format("resolving '{}' took {:.1f} s", lookup.name, lookup.seconds),
              fmt::format("repair the name server in /etc/resolv.conf, or add {} {} to /etc/hosts",
                          address, lookup.name));
  }
}

std::string port_text(int port) {
  return port == 0 ? "a port of the kernel's choice" : fmt::format("port {}", port);
}

std::string mend_link(const std::vector<int>& ports, const std::string& host) {
  const int port = ports[0];
  if (ports.size() > 1 || port == 0) {
    return fmt::format(
        "let {} and the others reach each other's ports: sudo ufw allow from SUBNET, "
        "or sudo firewall-cmd --zone=trusted --add-source=SUBNET; is the cable in, is "
        "there a route (ip route get)",
        host);
  }
  return fmt::format("on {0}: sudo ufw allow {1}/tcp, or sudo firewall-cmd --add-port={1}/tcp",
                     host, port);
}

/// Failed links: one row for those that differ only in where they start.
class LinkRows {
 public:
  explicit LinkRows(const Findings& all) : all_(all) {
    std::map<int, bool> unreached;
    for (const LinkFinding& link : all.links) {
      unreached.try_emplace(link.to, true);
      unreached[link.to] &= !link.problem.empty();
    }
    for (const auto& [host, is_cut] : unreached) {
      if (is_cut && all.hosts.size() > 2) cut_.insert(host);
    }
  }

  CheckRows rows() const {
    CheckRows rows;
    for (const int host : cut_) rows.push_back(cut_row(host));
    for (const auto& [key, from] : failures()) {
      const auto& [to, ports, problem] = key;
      rows.push_back(
          {"links", CheckResult::kFail,
           fmt::format("{} from {}: {}: {}", name(to), host_list(from, all_.hosts.size() + 1),
                       ports_text(ports), problem),
           mend_link(ports, name(to))});
    }
    return rows;
  }

 private:
  /// Hosts that cannot reach a target, by host, ports and reason.
  using Failures =
      std::map<std::tuple<int, std::vector<int>, std::string>, std::vector<std::string>>;

  /// Failures of hosts that are not cut off altogether.
  Failures failures() const {
    std::map<std::tuple<int, int, std::string>, std::vector<int>> ports_of;
    for (const LinkFinding& link : all_.links) {
      if (!link.problem.empty() && !cut_.contains(link.from) && !cut_.contains(link.to))
        ports_of[{link.from, link.to, link.problem}].push_back(link.port);
    }
    Failures failures;
    for (const auto& [key, ports] : ports_of) {
      const auto& [from, to, problem] = key;
      failures[{to, ports, problem}].push_back(name(from));
    }
    return failures;
  }

  CheckRow cut_row(int host) const {
    for (const LinkFinding& link : all_.links) {
      if (link.to != host) continue;
      return {"links", CheckResult::kFail,
              fmt::format("{} is out of reach of every other host: {}", name(host), link.problem),
              mend_link({0}, name(host))};
    }
    return {};
  }

  std::string ports_text(const std::vector<int>& ports) const {
    constexpr size_t kShown = 4;
    std::string text;
    for (size_t i = 0; i < std::min(kShown, ports.size()); ++i)
      text += (i == 0 ? "" : ", ") + port_text(ports[i]);
    return ports.size() > kShown ? fmt::format("{} and {} more", text, ports.size() - kShown)
                                 : text;
  }
  const std::string& name(int host) const { return all_.hosts[static_cast<size_t>(host)].name; }

  const Findings& all_;
  std::set<int> cut_;
};

std::string mend_firewall(const Firewall& firewall) {
  const std::string& program = firewall.program;
  if (program == "ufw") return "sudo ufw disable, or sudo ufw allow from SUBNET";
  if (program == "firewalld") return "sudo systemctl stop firewalld, or trust the hosts' subnet";
  if (program == "nft")
    return fmt::format("sudo nft insert rule {} ip saddr SUBNET accept", firewall.chain);
  return "sudo iptables -I INPUT -s SUBNET -j ACCEPT";
}

}  // namespace

CheckRows check_names(const std::vector<HostFinding>& hosts) {
  RowBuilder rows("names", hosts.size());
  const bool many = std::any_of(hosts.begin(), hosts.end(), [&](const HostFinding& host) {
    return host.facts.host_id != hosts[0].facts.host_id;
  });
  for (const HostFinding& host : hosts) {
    for (const NameLookup& lookup : host.facts.names) {
      const HostFinding* other = lookup.name == host.facts.hostname ? &host : nullptr;
      for (const HostFinding& each : hosts) {
        if (each.name == lookup.name) other = &each;
      }
      if (other != nullptr) check_lookup(host, *other, lookup, many, &rows);
    }
  }
  return rows.finish("each host resolves all names");
}

CheckRows check_ports(const std::vector<HostFinding>& hosts) {
  RowBuilder rows("ports", hosts.size());
  std::set<int> asked;
  for (const HostFinding& host : hosts) {
    for (const ListeningPort& port : host.facts.ports) {
      asked.insert(port.asked);
      if (port.error.empty()) continue;
      // The first host serves the job; on the others only HCCL's ports must be free.
      rows.add(&host == &hosts[0] ? CheckResult::kFail : CheckResult::kWarn, host.name, port.error,
               fmt::format("find its owner: sudo ss -ltnp 'sport = :{}'; or choose another with "
                           "--master_port",
                           port.asked));
    }
  }
  std::string well;
  for (auto port = asked.rbegin(); port != asked.rend(); ++port)
    well += (well.empty() ? "" : ", ") + port_text(*port);
  return rows.finish(well + ": free");
}

CheckRows check_links(const Findings& all) {
  if (all.links.empty()) return {};
  CheckRows rows = LinkRows(all).rows();
  if (!rows.empty()) return rows;
  std::set<std::pair<int, int>> pairs;
  for (const LinkFinding& link : all.links) pairs.insert({link.from, link.to});
  return {{"links", CheckResult::kPass,
           fmt::format("{}, each way, on every port",
                       pairs.size() == 2 ? "1 pair" : fmt::format("{} pairs", pairs.size() / 2)),
           ""}};
}

CheckRows check_firewalls(const std::vector<HostFinding>& hosts) {
  RowBuilder rows("firewall", hosts.size());
  std::set<std::string> unknown;
  for (const HostFinding& host : hosts) {
    for (const Firewall& firewall : host.facts.firewalls) {
      if (firewall.state == FirewallState::kUnknown) unknown.insert(firewall.program);
      if (firewall.state != FirewallState::kOn) continue;
      rows.add(CheckResult::kWarn, host.name,
               fmt::format("{} blocks: {}", firewall.program, firewall.detail),
               mend_firewall(firewall));
    }
  }
  if (unknown.empty()) return rows.finish("none blocks");
  return rows.finish(fmt::format("none seen (reading {} takes root)", fmt::join(unknown, ", ")));
}

}  // namespace lockstep::doctor
