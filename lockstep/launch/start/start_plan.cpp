#include "lockstep/launch/start/start_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/file.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/world/identity.h"
#include "lockstep/world/kernel_variables.h"

namespace lockstep {
namespace {

std::string without_user(const std::string& host) {
  const size_t at = host.find('@');
  return at == std::string::npos ? host : host.substr(at + 1);
}

}  // namespace

bool is_this_host(const std::string& host) {
  const std::string own = host_name();
  return is_loopback(host) || host == own || host == own.substr(0, own.find('.'));
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

std::string meeting_address(const StartHello& hello, const std::vector<std::string>& hosts) {
  if (!hello.address.empty() && !is_loopback(hello.address)) return hello.address;
  std::string first = without_user(hosts.front());
  if (!is_this_host(first)) return first;
  bool all_here = true;
  for (const std::string& host : hosts) {
    if (is_this_host(host)) continue;
    // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): it does not follow what is caught
    all_here = false;
    try {
      return local_address_towards(without_user(host));
    } catch (const Error&) {  // a name that only ssh knows, or nobody: ssh says so
    }
  }
  return all_here ? "127.0.0.1" : host_name();
}

}  // namespace lockstep
