#pragma once
// --rdzv_backend and --rdzv_conf: where agents meet, and how long they wait.

#include <chrono>
#include <optional>
#include <string>

namespace lockstep::inline internal {

/// `name`, if it is a rendezvous backend. static: a fixed number of hosts with given ranks; host 0
/// serves --master_addr. c10d: built in; the agent at the endpoint serves, others can take over.
/// etcd, etcd-v2: both use etcd's v3 API. file: a folder that all hosts share. Errors:
/// kInvalidArgument naming `what` and the nearest backend.
std::string parse_rendezvous_backend(const std::string& name, const std::string& what);

/// Values of --rdzv_conf KEY=VALUE,...; keys not given have their defaults.
struct RendezvousConf {
  std::chrono::milliseconds join_timeout{900'000};    ///< join_timeout or timeout: for MIN hosts.
  std::chrono::milliseconds last_call_timeout{3000};  ///< With MIN: how long to wait for MAX hosts.
  std::chrono::milliseconds heartbeat_interval{200};  ///< keep_alive_interval.
  int heartbeat_attempts = 10;                        ///< keep_alive_max_attempt; then it is gone.
  bool silence_given = false;  ///< One of these two was given; else see allowed_silence().
  std::chrono::milliseconds read_timeout{60'000};  ///< Of one call to the rendezvous store.
  std::optional<bool> is_host;   ///< This agent serves the endpoint; not given: by its address.
  std::optional<int> conf_rank;  ///< rank: as --node_rank.
  bool file_store = false;       ///< store_type=file: the backend is file.
  bool https = false;            ///< protocol, of etcd.
  std::string ca_cert;           ///< ca_cert or cacert.
  std::string ssl_cert;          ///< ssl_cert or cert.
  std::string ssl_cert_key;      ///< ssl_cert_key or key.
  std::string etcd_prefix;       ///< Before all keys in etcd.
};

/// Takes the keys of all of torchrun's backends, whichever is chosen; seconds may have a fraction.
/// The keys close_timeout and heartbeat_timeout have no effect: a job's end is known at once, and
/// heartbeats do not block.
///
/// Errors: kInvalidArgument naming `what` and the key. The allowed silence of an agent,
/// keep_alive_interval * keep_alive_max_attempt, is at most kMaxHoldTtl.
RendezvousConf parse_rendezvous_conf(const std::string& text, const std::string& what);

/// "2.5" seconds. Errors: kInvalidArgument naming `what`.
std::chrono::milliseconds parse_seconds(const std::string& text, const std::string& what);

}  // namespace lockstep::inline internal
