#include "lockstep/world/detect/bootstrap_choice.h"

#include <fmt/format.h>

#include "lockstep/base/auth.h"
#include "lockstep/base/env.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/secret.h"

namespace lockstep::inline internal {
namespace {

/// A secret that follows from the job's name: it distinguishes jobs, but excludes nobody.
std::string secret_for_all(const Identity& id) {
  return hex_digits(hmac_sha256("lockstep insecure", id.job_id));
}

bool is_yes(const Reader& read, const char* name) {
  return parse_yes(read.text(name).value_or("0"), name);
}

constexpr const char* kWaysToShare =
    "LOCKSTEP_RENDEZVOUS_DIR to a folder that all hosts share, or start them by a launcher with "
    "PMIx or PMI (mpirun, mpiexec, srun --mpi=pmix or --mpi=pmi2), or where munged runs on all "
    "hosts";

[[noreturn]] void need_address(const Identity& id) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} gives the rank ({}) but no place where the ranks meet: set "
                          "MASTER_ADDR (and MASTER_PORT) to rank 0's host on all ranks, or {}",
                          id.launcher, describe(id), kWaysToShare));
}

/// With a secret a rank waits for the name; without one an unknown name is reported at once.
std::string unknown_host_text(const Reader& read, const std::string& host) {
  if (read.knows_host(host)) return "";
  return fmt::format(
      "host '{}', where the ranks meet, is unknown here: check the name, or give "
      "its address as a number. Then: ",
      host);
}

/// Addition to the text about munged.
std::string munge_text(const Reader& read) {
  const std::string why = read.why_no_munge();
  if (why.empty()) return "";
  return fmt::format(" ({}; LOCKSTEP_MUNGE_SOCKET sets its socket)", why);
}

[[noreturn]] void need_secret(const Reader& read, const Identity& id) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}ranks meet at {}, which is not this host's loopback: set "
                          "LOCKSTEP_SECRET to the same text (openssl rand -hex 32) on all ranks or "
                          "LOCKSTEP_SECRET_FILE to a file of mode 600 that holds it, or {}{}; or "
                          "LOCKSTEP_INSECURE=1 where nobody else is on the network",
                          unknown_host_text(read, id.master.host), id.master.host, kWaysToShare,
                          munge_text(read)));
}

/// Whether the process manager's rank is this one's. Below an agent it is the agent's.
bool is_own_rank(const Reader& read, const Identity& id, const char* rank, const char* size) {
  if (id.launcher == "lockstep" || read.text("TORCHELASTIC_RUN_ID")) return false;
  return read.text(rank) == std::to_string(id.rank) &&
         read.text(size).value_or(std::to_string(id.size)) == std::to_string(id.size);
}

/// Several processes can use PMIx. After PMI was used with hydra, MPI_Init fails, so a folder named
/// by the user comes before it. MUNGE has no notion of a job: it comes last.
std::vector<Channel> usable_channels(const Reader& read, const Identity& id) {
  std::vector<Channel> channels;
  if (is_own_rank(read, id, "PMIX_RANK", "PMIX_JOB_SIZE") && read.text("PMIX_NAMESPACE"))
    channels.push_back(Channel::kPmix);
  if (read.text("LOCKSTEP_RENDEZVOUS_DIR")) channels.push_back(Channel::kFolder);
  if (is_own_rank(read, id, "PMI_RANK", "PMI_SIZE") &&
      (read.text("PMI_FD") || read.text("PMI_PORT")))
    channels.push_back(Channel::kPmi);
  if (channels.empty() && !id.master.host.empty() && read.has_munge())
    channels.push_back(Channel::kMunge);
  return channels;
}

void go_without_secret(Identity* id, std::vector<std::string>* warnings) {
  check_wire("", id->wire);
  id->insecure = true;
  id->secret = secret_for_all(*id);
  warnings->push_back(without_secret_warning("ranks of several hosts", "their ports"));
}

/// The ranks' hosts are unknown, and rank 0's host is this one. Ranks of other hosts, if there are
/// any, get the advice to set a secret.
void stay_on_this_host(Identity* id, std::vector<std::string>* warnings) {
  warnings->push_back(fmt::format(
      "LOCKSTEP_SECRET is not set: only ranks of this host, {}, can take part", id->master.host));
  id->master.host = "127.0.0.1";
  id->wire = Wire::kPlain;
}

}  // namespace

void choose_bootstrap(const Reader& read, Identity* id, std::vector<std::string>* warnings) {
  check_log_level(read.text("LOCKSTEP_LOG_LEVEL").value_or("info"));
  id->secret = read.secret();
  id->address = read.text("LOCKSTEP_ADDRESS").value_or("");
  if (id->scheduler) return;
  const bool insecure = is_yes(read, "LOCKSTEP_INSECURE");
  if (is_yes(read, "LOCKSTEP_TLS")) id->wire = Wire::kTls;
  const bool agent = id->launcher == "lockstep";
  if (id->size == 1 && !agent) return;
  id->bootstrap = agent ? BootstrapMethod::kAgent : BootstrapMethod::kRankZero;
  // Between processes of one host loopback is best, whatever address the launcher gives.
  if (!agent && id->num_nodes == 1 && !id->master.host.empty()) id->master.host = "127.0.0.1";
  const bool has_address = !id->master.host.empty();
  const bool between_hosts = !has_address || !is_loopback(id->master.host);
  const std::string weak = weak_secret_warning(id->secret, "ranks");
  if (!agent && between_hosts && !weak.empty()) warnings->push_back(weak);
  if (has_address && !id->secret.empty()) return;
  if (has_address && is_loopback(id->master.host)) {
    id->wire = Wire::kPlain;  // nothing leaves this host
    return;
  }
  if (has_address && insecure) return go_without_secret(id, warnings);
  id->channels = agent ? std::vector<Channel>() : usable_channels(read, *id);
  if (!id->channels.empty())
    id->bootstrap = BootstrapMethod::kExchange;
  else if (has_address && !agent && id->num_nodes == kUnknownNumber &&
           read.is_own_host(id->master.host))
    stay_on_this_host(id, warnings);
  else if (has_address)
    need_secret(read, *id);
  else
    need_address(*id);
}

}  // namespace lockstep::inline internal
