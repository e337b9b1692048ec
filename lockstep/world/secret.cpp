#include "lockstep/world/secret.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

/// Not the job's name, as for ranks: some agents may have been given it and others not.
constexpr char kKnownToAll[] = "LOCKSTEP_INSECURE";

/// A shorter chosen secret can be guessed from a recorded handshake.
constexpr size_t kStrongSecret = 16;

bool is_own_group(gid_t group) {
  if (group == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

/// A secret as Kubernetes mounts it: root's, readable by a group of ours (fsGroup). Kubernetes
/// turns defaultMode 0600 into 0640, and users cannot change that.
bool is_mounted_secret(const struct stat& status) {
  const unsigned mode = status.st_mode & 07777;
  const bool by_root = status.st_uid == 0 && ::geteuid() != 0 && (mode & 07137) == 0;
  return (mode == 0440 || by_root) && is_own_group(status.st_gid);
}

}  // namespace

std::string read_secret_file(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("environment variable LOCKSTEP_SECRET_FILE: {} {}", path, why));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) throw refuse("is not a file");
    if (status.st_uid != ::geteuid() && status.st_uid != 0) throw refuse("belongs to another user");
    const auto mode = static_cast<unsigned>(status.st_mode & 07777);
    if ((mode & 077) != 0 && !is_mounted_secret(status))
      throw refuse(
          fmt::format("can be read by others (mode {:o}): chmod 600 it, or where "
                      "Kubernetes mounts it write defaultMode: 0440",
                      mode));
  }
  auto secret = read_file(path, 4096);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty() || secret.find('\n') != std::string::npos)
    throw refuse("must hold one line, the secret");
  return secret;
}

std::string secret_of_environment() {
  if (auto given = env("LOCKSTEP_SECRET")) return *given;
  const auto path = env("LOCKSTEP_SECRET_FILE");
  return path ? read_secret_file(*path) : "";
}

std::string secret_source() {
  if (env("LOCKSTEP_SECRET")) return "the variable LOCKSTEP_SECRET";
  if (const auto path = env("LOCKSTEP_SECRET_FILE"))
    return fmt::format("the file {} (LOCKSTEP_SECRET_FILE)", *path);
  return env_or("LOCKSTEP_INSECURE", "0") != "0"
             ? "nowhere (LOCKSTEP_INSECURE)"
             : "nowhere: neither LOCKSTEP_SECRET nor LOCKSTEP_SECRET_FILE is set";
}

std::string secret_of_agents(Wire wire) {
  auto secret = secret_of_environment();
  const bool insecure = parse_yes(env_or("LOCKSTEP_INSECURE", "0"), "LOCKSTEP_INSECURE");
  if (!secret.empty() || !insecure) return secret;
  check_wire("", wire);
  return kKnownToAll;
}

void check_host_of_agents(const std::string& secret, const std::string& host,
                          const std::string& what) {
  if (!secret.empty() || can_resolve(host)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: host '{}' is unknown here: check the name, or give its address as a "
                          "number. Agents of several hosts also need LOCKSTEP_SECRET or "
                          "LOCKSTEP_SECRET_FILE",
                          what, host));
}

std::string weak_secret_warning(const std::string& secret, const std::string& members) {
  if (secret.empty() || secret.size() >= kStrongSecret) return "";
  return fmt::format(
      "the secret has {} bytes: an eavesdropper between {} can guess one of less "
      "than {}; make one by openssl rand -hex 32",
      secret.size(), members, kStrongSecret);
}

std::string without_secret_warning(const std::string& members, const std::string& place) {
  return fmt::format(
      "LOCKSTEP_INSECURE=1: {} meet without a secret; any program that reaches {} can take part",
      members, place);
}

void check_secret_of_agents(const std::string& secret, const std::string& address,
                            const std::string& what) {
  if (is_loopback(address)) return;
  if (secret == kKnownToAll) log_warn(without_secret_warning("the hosts", address));
  const std::string weak = secret == kKnownToAll ? "" : weak_secret_warning(secret, "hosts");
  if (!weak.empty()) log_warn(weak);
  if (!secret.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} {} is reachable by others: set LOCKSTEP_SECRET to the same text "
                          "(openssl rand -hex 32) on all hosts or LOCKSTEP_SECRET_FILE to a file "
                          "of mode 600 that holds it; LOCKSTEP_INSECURE=1 does without one, where "
                          "nobody else is on the network",
                          what, address));
}

}  // namespace lockstep::inline internal
