#include "lockstep/launch/start/host_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "lockstep/base/counted.h"
#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/detect/host_list.h"
#include "lockstep/world/kernel_variables.h"

namespace lockstep::inline internal {
namespace {

[[noreturn]] void refuse_hosts(const std::string& text) {
  throw Error(ErrorCode::kInvalidArgument, text);
}

bool is_own_name(const std::string& host) {
  const std::string own = host_name();
  return is_loopback(host) || host == own || host == own.substr(0, own.find('.'));
}

int slots_of(const std::string& text, const std::string& what) {
  return static_cast<int>(parse_int(text, 1, 1 << 16, what));
}

/// "name", "name:2", "[v6]", "[v6]:2", or an IPv6 address without brackets, which has no slots.
HostSlots parse_host(const std::string& item, const std::string& what) {
  HostSlots host;
  size_t colon = item.find(':');
  if (!item.empty() && item[0] == '[') {
    const size_t end = item.find(']');
    if (end == std::string::npos) refuse_hosts(fmt::format("{}: '{}' has no ']'", what, item));
    host.host = item.substr(1, end - 1);
    if (end + 1 < item.size() && item[end + 1] != ':') {
      refuse_hosts(fmt::format("{}: '{}' is not [ADDRESS]:SLOTS", what, item));
    }
    colon = end + 1 < item.size() ? end + 1 : std::string::npos;
  } else {
    if (colon != std::string::npos && item.find(':', colon + 1) != std::string::npos) {
      colon = std::string::npos;
    }
    host.host = item.substr(0, colon);
  }
  if (host.host.empty() || host.host[0] == '-' ||
      host.host.find_first_of(" \t'\"\\;|&<>$`(){}*?!") != std::string::npos) {
    refuse_hosts(fmt::format("{}: '{}' is not HOST or HOST:SLOTS", what, item));
  }
  if (colon != std::string::npos) {
    host.slots = slots_of(item.substr(colon + 1), what + ", slots of " + host.host);
  }
  return host;
}

void add_host(const HostSlots& host, std::vector<HostSlots>* hosts) {
  for (HostSlots& each : *hosts) {
    if (each.host != host.host) continue;
    each.slots += host.slots;
    return;
  }
  hosts->push_back(host);
}

/// Splits at commas outside brackets.
std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items = {""};
  bool inside = false;
  for (const char c : text) {
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (c == ',' && !inside) {
      items.emplace_back();
    } else {
      items.back() += c;
    }
  }
  return items;
}

/// "gpu[1-2]:4" as "gpu1:4" and "gpu2:4". A bracket at the beginning belongs to an IPv6 address.
std::vector<std::string> without_ranges(const std::string& item, const std::string& what) {
  const size_t begin = item.find('[');
  if (begin == 0 || begin == std::string::npos) return {item};
  const size_t colon = std::min(item.find(':', item.rfind(']')), item.size());
  std::vector<std::string> items;
  try {
    items = expand_host_list(item.substr(0, colon));
  } catch (const Error& error) {
    refuse_hosts(fmt::format("{}: {}", what, error.what()));
  }
  for (std::string& each : items) each += item.substr(colon);
  return items;
}

HostSlots parse_line(const std::string& line, const std::string& what) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  HostSlots host = parse_host(word, what);
  while (words >> word) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos ||
        (key != "slots" && key != "max_slots" && key != "max-slots")) {
      refuse_hosts(fmt::format("{}: '{}' is neither slots=N nor max_slots=N", what, word));
    }
    const int slots = slots_of(word.substr(equals + 1), what + ", " + key);
    if (key == "slots") host.slots = slots;
  }
  return host;
}

int total(const std::vector<HostSlots>& hosts) {
  int sum = 0;
  for (const HostSlots& host : hosts) sum += host.slots;
  return sum;
}

std::string without_user(const std::string& host) {
  const size_t at = host.find('@');
  return at == std::string::npos ? host : host.substr(at + 1);
}

}  // namespace

std::vector<HostSlots> host_list_items(const std::string& text, const std::string& what) {
  std::vector<HostSlots> hosts;
  for (const std::string& item : items_of(text)) {
    for (const std::string& each : without_ranges(item, what))
      hosts.push_back(parse_host(each, what));
  }
  return hosts;
}

std::vector<HostSlots> parse_host_list(const std::string& text, const std::string& what) {
  std::vector<HostSlots> hosts;
  for (const HostSlots& each : host_list_items(text, what)) add_host(each, &hosts);
  return hosts;
}

std::vector<HostSlots> parse_host_file(const std::string& text, const std::string& file) {
  std::vector<HostSlots> hosts;
  int number = 0;
  for (std::string line : split(text, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    add_host(parse_line(line, fmt::format("{}:{}", file, number)), &hosts);
  }
  if (hosts.empty()) refuse_hosts(file + " names no host");
  return hosts;
}

std::vector<HostSlots> plan_hosts(const std::vector<HostSlots>& hosts,
                                  const HostPlanOptions& options) {
  if (hosts.empty()) refuse_hosts("no host is given");
  std::vector<HostSlots> plan = hosts;
  if (options.ranks_per_host > 0) {
    for (HostSlots& host : plan) host.slots = options.ranks_per_host;
  }
  const int slots = total(plan);
  if (options.ranks == 0) return plan;
  if (options.ranks > slots && !options.oversubscribe) {
    refuse_hosts(fmt::format(
        "-n {} is more than the {} of {}; give more (HOST:SLOTS) or "
        "--oversubscribe",
        options.ranks, counted(slots, "slot"), counted(static_cast<int64_t>(plan.size()), "host")));
  }
  int left = options.ranks;
  for (HostSlots& host : plan) {
    host.slots = std::min(host.slots, left);
    left -= host.slots;
  }
  for (size_t i = 0; left > 0; --left) plan[i++ % plan.size()].slots += 1;
  std::erase_if(plan, [](const HostSlots& host) { return host.slots == 0; });
  return plan;
}

std::string shell_quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./=:,@%+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::vector<std::string> remote_words(const std::string& rsh, const std::string& host,
                                      const std::string& command) {
  std::vector<std::string> words;
  std::istringstream parts(rsh);
  bool named = false;
  for (std::string word; parts >> word;) {
    for (size_t at = word.find("{host}"); at != std::string::npos; at = word.find("{host}", at)) {
      word.replace(at, 6, host);
      at += host.size();
      named = true;
    }
    words.push_back(word);
  }
  if (words.empty()) refuse_hosts("--rsh is empty");
  if (!named) words.push_back(host);
  words.push_back(command);
  return words;
}

bool is_this_host(const std::string& host) {
  return is_own_name(host) || is_interface_address(host);
}

std::vector<HostSlots> planned_hosts(const RunOptions& options) {
  const auto given =
      options.host_file.empty()
          ? parse_host_list(options.hosts, "--host")
          : parse_host_file(read_file(options.host_file, 1 << 24), options.host_file);
  return plan_hosts(given, {options.total_ranks, options.nproc_given ? options.nproc_per_node : 0,
                            options.oversubscribe});
}

std::map<std::string, std::string> exported_variables(const RunOptions& options,
                                                      const Environment& environment) {
  std::map<std::string, std::string> variables;
  const auto pass_on = [&](const char* name) {
    const auto found = environment.find(name);
    if (found != environment.end()) variables[name] = found->second;
  };
  for (const char* name : {"OMP_NUM_THREADS", "PYTHON_EXEC", "LOCKSTEP_LOG_LEVEL"}) pass_on(name);
  for (const char* name : kKernelVariables) pass_on(name);
  pass_on("LOCKSTEP_PORT_RANGE");
  if (!options.port_range.empty()) variables["LOCKSTEP_PORT_RANGE"] = options.port_range;
  for (const std::string& item : options.exported) {
    const size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    const auto found = environment.find(name);
    if (equals == std::string::npos && found == environment.end()) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("-x {}: it is not set here", name));
    }
    variables[name] = equals == std::string::npos ? found->second : item.substr(equals + 1);
  }
  return variables;
}

std::string rendezvous_address(const StartHello& hello, const std::vector<std::string>& hosts) {
  if (!hello.address.empty() && !is_loopback(hello.address)) return hello.address;
  std::string first = without_user(hosts.front());
  if (!is_own_name(first)) return first;
  bool all_here = true;
  for (const std::string& host : hosts) {
    if (is_this_host(host)) continue;
    // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): it does not follow what is caught
    all_here = false;
    try {
      return local_address_towards(without_user(host));
    } catch (const Error&) {  // a name that only ssh can resolve, or an unknown one: ssh reports it
    }
  }
  return all_here ? "127.0.0.1" : host_name();
}

}  // namespace lockstep::inline internal
