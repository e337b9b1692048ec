#include "lockstep/launch/rendezvous/rendezvous_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/built_in_backend.h"
#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/store/etcd/etcd_store.h"
#include "lockstep/store/file/file_store.h"
#include "lockstep/world/addresses.h"
#include "lockstep/world/environment.h"
#include "lockstep/world/reported_wait.h"
#include "lockstep/world/secret.h"

namespace lockstep::inline internal {
namespace {

/// Name of runs without one, as in torchrun: agents find each other by it.
constexpr char kNoName[] = "none";
constexpr int kEtcdPort = 2379;
/// Pause between two attempts to find a lost store again.
constexpr std::chrono::milliseconds kPause{100};

/// Address by which other hosts, which also reach `servers`, reach this one.
std::string address_among(const std::vector<std::string>& servers) {
  const Environment environment = this_environment();
  try {
    return own_addresses(environment, servers).front();
  } catch (const Error&) {
    if (!wished_address(environment).variable.empty()) throw;
    return "127.0.0.1";  // a host without a network
  }
}

/// Errors: kInvalidArgument naming the member of --rdzv_endpoint that is none.
EtcdOptions etcd_options(const RunOptions& options) {
  EtcdOptions etcd;
  for (const auto& member : split(options.rdzv_endpoint, ','))
    etcd.members.push_back(parse_endpoint(member, kEtcdPort));
  const std::string& prefix = options.etcd_prefix;
  const std::string root = prefix.substr(std::min(prefix.size(), prefix.find_first_not_of('/')));
  if (!root.empty()) etcd.root = root.ends_with('/') ? root : root + '/';
  etcd.tls = {options.ca_cert, options.ssl_cert, options.ssl_cert_key};
  etcd.use_tls = options.https || !options.ca_cert.empty() || !options.ssl_cert.empty() ||
                 !options.ssl_cert_key.empty();
  return etcd;
}

/// A store that survives any agent: etcd, or a folder that all hosts share. Any agent may lead.
/// Keys lie below the run's name.
class StoreBackend final : public RendezvousBackend {
 public:
  /// Errors: kInvalidArgument (other hosts reach the store, and there is no secret).
  StoreBackend(const RunOptions& options, const std::string& secret);

  std::shared_ptr<KeyValueStore> open(Deadline deadline) override;
  std::shared_ptr<KeyValueStore> reopen(const Candidates& candidates, const std::atomic<bool>& stop,
                                        Deadline deadline) override;
  std::shared_ptr<KeyValueStore> rejoin(const std::atomic<bool>& stop, Deadline deadline) override;
  bool by_lease() const override { return options_.rdzv_backend != "file"; }
  bool may_lead() const override { return true; }
  std::string own_address() const override { return address_; }
  std::string listen_host() const override;
  int own_port() const override { return 0; }
  std::optional<Endpoint> elsewhere() const override { return std::nullopt; }
  Endpoint endpoint() const override { return {}; }
  std::string name() const override { return name_; }
  std::string loss() const override { return name_ + " cannot be reached"; }
  /// Long enough for a restart of the service.
  std::chrono::milliseconds call_limit() const override { return options_.read_timeout; }
  void close(Deadline) override {}

 private:
  std::shared_ptr<KeyValueStore> open_once(Deadline deadline) const;
  void report(const Error& failure) const;

  const RunOptions options_;
  const std::string secret_;
  EtcdOptions etcd_;  ///< Without members if the store is in the folder `name_`.
  std::string name_;
  std::string address_;
};

StoreBackend::StoreBackend(const RunOptions& options, const std::string& secret)
    : options_(options), secret_(secret) {
  if (options_.rdzv_backend == "file") {
    name_ = std::filesystem::absolute(options_.rdzv_endpoint).lexically_normal().string();
    address_ = address_among({});
  } else {
    name_ = "etcd " + options_.rdzv_endpoint;
    etcd_ = etcd_options(options_);
    const std::string& host = etcd_.members.front().host;
    check_host_of_agents(secret_, host, "--rdzv_endpoint");
    address_ = address_among({host});
  }
  if (!options_.local_addr.empty()) address_ = options_.local_addr;
  check_secret_of_agents(
      secret_, address_,
      fmt::format("--rdzv_backend {}: this host's address (--local_addr 127.0.0.1 if all agents "
                  "are on this host)",
                  options_.rdzv_backend));
}

std::string StoreBackend::listen_host() const {
  return lockstep::listen_host(address_);
}

std::shared_ptr<KeyValueStore> StoreBackend::open(Deadline deadline) {
  return wait_and_report(
      deadline, kReportSearchAfter, [&](Deadline limit) { return open_once(limit); },
      [&](const Error& error) { report(error); });
}

void StoreBackend::report(const Error& failure) const {
  log_info(fmt::format("this host waits for {}: {}", name_, failure.what()));
}

std::shared_ptr<KeyValueStore> StoreBackend::open_once(Deadline deadline) const {
  try {
    auto store = etcd_.members.empty() ? join_file_store(name_, secret_, deadline)
                                       : connect_etcd_store(etcd_, deadline);
    return with_prefix(std::move(store), options_.run_id.empty() ? kNoName : options_.run_id);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kMismatch) throw;
    throw Error(ErrorCode::kInvalidArgument, error.what());  // the user named another job's folder
  }
}

std::shared_ptr<KeyValueStore> StoreBackend::rejoin(const std::atomic<bool>& stop,
                                                    Deadline deadline) {
  try {
    return reopen({}, stop, deadline);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    return nullptr;
  }
}

std::shared_ptr<KeyValueStore> StoreBackend::reopen(const Candidates&,
                                                    const std::atomic<bool>& stop,
                                                    Deadline deadline) {
  const auto report_at = Deadline::after(kReportSearchAfter);
  bool reported = false;
  while (!stop) {
    try {
      return open_once(deadline.at_most(std::chrono::seconds(2)));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInvalidArgument || deadline.passed()) throw;
      if (!reported && report_at.passed()) {
        report(error);
        reported = true;
      }
      std::this_thread::sleep_for(kPause);  // a missing folder fails at once
    }
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<RendezvousBackend> make_rendezvous_backend(const RunOptions& options,
                                                           const std::string& secret) {
  if (options.rdzv_backend == "static" || options.rdzv_backend == "c10d") {
    return std::make_unique<BuiltInBackend>(options, secret);
  }
  return std::make_unique<StoreBackend>(options, secret);
}

}  // namespace lockstep::inline internal
