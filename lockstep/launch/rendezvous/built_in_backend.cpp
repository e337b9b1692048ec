#include "lockstep/launch/rendezvous/built_in_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "lockstep/base/addresses.h"
#include "lockstep/base/auth.h"
#include "lockstep/base/holder.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/base/socket.h"
#include "lockstep/error.h"
#include "lockstep/launch/rendezvous/keys.h"
#include "lockstep/launch/rendezvous/silence.h"
#include "lockstep/world/addresses.h"
#include "lockstep/world/identity.h"
#include "lockstep/world/reported_wait.h"
#include "lockstep/world/secret.h"

namespace lockstep::inline internal {
namespace {

/// A live server answers within this time, or within its allowed silence.
constexpr std::chrono::milliseconds kAnswerLimit{2000};
/// The former server's host has been silent for a second and more. If it is up, its kernel accepts
/// a connection at once, however busy the agent is.
constexpr std::chrono::milliseconds kSilentHostLimit{500};
/// After this time it checks again whether the endpoint is on this host.
constexpr std::chrono::seconds kLongestTry{10};
/// Pause between two rounds over the candidates.
constexpr std::chrono::milliseconds kRoundPause{100};

BuiltInBackend::Role role_of(const RunOptions& options, const std::string& host) {
  using Role = BuiltInBackend::Role;
  if (options.rdzv_backend == "static") {
    return options.node_rank == 0 ? Role::kServes : Role::kConnects;
  }
  if (options.is_host) return *options.is_host ? Role::kServes : Role::kConnects;
  return is_own_address(host) ? Role::kMayServe : Role::kConnects;
}

/// The endpoint's host. Host 0, or an agent told to serve, serves whatever its name; all others
/// must be able to resolve the name.
std::string master_of(const RunOptions& options, const std::string& secret) {
  const bool fixed = options.rdzv_backend == "static";
  const char* what = fixed ? "--master_addr" : "--rdzv_endpoint";
  const bool serves = fixed ? options.node_rank == 0 : options.is_host.value_or(false);
  if (!serves) check_host_of_agents(secret, options.master_addr, what);
  check_secret_of_agents(secret, options.master_addr, what);
  if (serves || is_loopback(options.master_addr)) return options.master_addr;
  return wait_for_name(options.master_addr, Deadline::after(options.join_timeout));
}

}  // namespace

BuiltInBackend::BuiltInBackend(const RunOptions& options, const std::string& secret)
    : options_(options),
      secret_(secret),
      endpoint_{master_of(options, secret), options.master_port},
      role_(role_of(options, endpoint_.host)) {
  own_listener_ = tcp_listen(listen_host(), 0);
  own_port_ = local_port(own_listener_.get());
}

BuiltInBackend::~BuiltInBackend() = default;

std::string BuiltInBackend::listen_host() const {
  return lockstep::listen_host(endpoint_.host);
}

std::string BuiltInBackend::own_address() const {
  if (is_loopback(endpoint_.host)) return listen_host();
  if (role_ == Role::kConnects) {
    auto address = local_address_towards(endpoint_.host);
    if (!is_loopback(address)) return address;
  }
  // The name by which the user reaches this host is known to work. Here it may mean loopback.
  return endpoint_.host;
}

std::chrono::milliseconds BuiltInBackend::call_limit() const {
  return std::max(kAnswerLimit, allowed_silence(options_, by_lease()).limit);
}

std::optional<Endpoint> BuiltInBackend::elsewhere() const {
  if (!server_ || to_string(at_) == to_string(endpoint_)) return std::nullopt;
  return endpoint_;
}

std::string BuiltInBackend::loss() const {
  return fmt::format("the agent {} ({}) died or cannot be reached",
                     options_.rdzv_backend == "static" ? "of host 0" : "that serves the job",
                     to_string(at_));
}

std::string BuiltInBackend::who_waits() const {
  return options_.rdzv_backend == "static"
             ? fmt::format("host {} waits for host 0", options_.node_rank)
             : "this host waits for others";
}

/// What this host waits for where no agent answers at the endpoint. An agent that may serve there
/// has just found that it cannot.
std::string BuiltInBackend::search_text() const {
  std::string text = fmt::format("{} at {}", who_waits(), name());
  if (role_ != Role::kMayServe) return text;
  return fmt::format(
      "{}; it would serve there, but port {} is {}: end that, or take another on all hosts", text,
      endpoint_.port, taken_by_text(endpoint_.port));
}

std::shared_ptr<Store> BuiltInBackend::serve(UniqueFd listener, const Endpoint& as) {
  const int port = local_port(listener.get());
  server_.emplace(
      std::move(listener),
      TcpStoreServerOptions{
          .host = listen_host(), .port = port, .secret = secret_, .wire = options_.wire});
  at_ = as;
  auto store = connect_tcp_store({host_for_itself(endpoint_.host), port}, secret_,
                                 Deadline::after(10s), options_.wire);
  store->set(keys::kJob, options_.run_id, Deadline::after(10s));
  return store;
}

/// Null if another agent already serves at the endpoint.
std::shared_ptr<Store> BuiltInBackend::try_to_serve() {
  try {
    return serve(tcp_listen(listen_host(), endpoint_.port), endpoint_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    return nullptr;
  }
}

std::shared_ptr<KeyValueStore> BuiltInBackend::open(Deadline deadline) {
  if (role_ != Role::kConnects) {
    if (auto store = try_to_serve()) return store;
    if (role_ == Role::kServes) {
      const bool fixed = options_.rdzv_backend == "static";
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: port {} is {}; end that, or take another on all hosts{}",
                              fixed ? "--master_port" : "--rdzv_endpoint", endpoint_.port,
                              taken_by_text(endpoint_.port),
                              fixed ? ". Has another agent --node_rank 0?" : ""));
    }
  }
  auto store = connect_or_serve(deadline);
  if (!server_) check_job(*store, deadline);
  return store;
}

/// Several agents may be on the endpoint's host. If the server goes before the job began, another
/// one serves.
std::shared_ptr<Store> BuiltInBackend::connect_or_serve(Deadline deadline) {
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): it does not follow what is caught
  const auto report_at = Deadline::after(kReportSearchAfter);
  bool reported = false;
  while (true) {
    const auto soon = deadline.at_most(role_ == Role::kMayServe || !reported ? 1s : kLongestTry);
    try {
      auto store = connect_tcp_store(endpoint_, secret_, soon, options_.wire);
      at_ = endpoint_;
      remembered_.clear();  // the name may mean another address now, as of a pod that was replaced
      return store;
    } catch (const WrongSecret& error) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}; this host has its secret from {}: compare it with the others'",
                              error.what(), secret_source()));
    } catch (const Error& error) {
      // A server that is ending may soon be replaced; a name may be unknown for a moment.
      const bool gone = error.code() == ErrorCode::kUnavailable;
      if (error.code() != ErrorCode::kTimeout && !gone) throw;
      if (deadline.passed() && role_ == Role::kMayServe)
        throw Error(error.code(), fmt::format("{} ({})", search_text(), error.what()));
      if (deadline.passed()) throw;
      if (gone) std::this_thread::sleep_for(std::min(kRoundPause, deadline.left()));
    }
    // The endpoint's address may have moved from another host, or been unavailable just then.
    if (role_ == Role::kConnects) role_ = role_of(options_, endpoint_.host);
    if (role_ == Role::kMayServe) {
      if (auto store = try_to_serve()) return store;
    }
    if (!reported && report_at.passed()) {
      log_info(search_text());
      reported = true;
    }
  }
}

/// The store may belong to another program, whose hosts would never come, or to another job.
void BuiltInBackend::check_job(Store& store, Deadline deadline) const {
  const bool fixed = options_.rdzv_backend == "static";
  const std::string what =
      fmt::format("{} at {}; a store is served there, but not by an agent {}", who_waits(), name(),
                  fixed ? "with --node_rank 0, so check --master_addr and --master_port"
                        : "of lockstep run, so check --rdzv_endpoint");
  std::string job;
  try {
    job = wait_and_report(
        deadline, kReportSearchAfter, [&](Deadline limit) { return store.get(keys::kJob, limit); },
        [&](const Error&) { log_info(what); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    throw Error(error.code(), fmt::format("{}: {}", what, error.what()));
  }
  if (keys::is_same_job(job, options_.run_id)) return;
  throw Error(
      ErrorCode::kMismatch,
      fmt::format("--rdzv_id {}: the agents that meet at {} are of job {}; give each job "
                  "{} of its own",
                  options_.run_id, name(), job, fixed ? "a --master_port" : "an --rdzv_endpoint"));
}

/// Keeps a listener: this agent may have to take over again at the address in its assignments.
void BuiltInBackend::stop_serving() {
  server_.reset();
  if (own_listener_) return;
  try {
    own_listener_ = tcp_listen(listen_host(), own_port_);
  } catch (const Error& error) {
    log_warn(fmt::format("this host cannot serve the rendezvous store again: {}", error.what()));
  }
}

/// The address of a name may be found only once. Afterwards the name servers may be out of reach.
void BuiltInBackend::remember_addresses() {
  const std::string at = to_string(at_);
  if (at == remembered_) return;
  addresses_.reset();
  remembered_.clear();
  if (server_) return;  // it needs no way to itself, and its name may be unknown here
  std::string problem;
  addresses_ = look_up(at_.host, at_.port, &problem);
  if (addresses_) remembered_ = at;
}

Listening BuiltInBackend::probe_server(Deadline deadline) const {
  return addresses_ ? probe(addresses_.get(), deadline) : probe(at_, deadline);
}

/// The former server by its addresses, any other as it is.
std::vector<Endpoint> BuiltInBackend::ways_to(const Endpoint& candidate) const {
  if (candidate.host != at_.host || !addresses_) return {candidate};
  std::vector<Endpoint> ways;
  for (const addrinfo* each = addresses_.get(); each != nullptr; each = each->ai_next) {
    ways.push_back({address_text(each->ai_addr, each->ai_addrlen, false), candidate.port});
  }
  return ways;
}

/// Null if no agent of the job serves there, or not any more.
std::shared_ptr<Store> BuiltInBackend::try_candidate(const Endpoint& candidate, Deadline deadline) {
  const bool was_silent = candidate.host == at_.host;
  for (const Endpoint& way : ways_to(candidate)) {
    if (!somebody_listens(way, was_silent ? deadline.at_most(kSilentHostLimit) : deadline))
      continue;
    if (auto store = try_at(way, deadline)) return store;
  }
  return nullptr;
}

std::shared_ptr<Store> BuiltInBackend::try_at(const Endpoint& address, Deadline deadline) {
  try {
    auto store = connect_tcp_store(address, secret_, deadline, options_.wire);
    return keys::is_same_job(store->get(keys::kJob, deadline), options_.run_id) ? store : nullptr;
  } catch (const Error&) {
    return nullptr;  // the next one may be alive
  }
}

bool BuiltInBackend::nobody_serves() {
  return probe_server(Deadline::after(kSilentHostLimit)) == Listening::kNo;
}

std::shared_ptr<KeyValueStore> BuiltInBackend::rejoin(const std::atomic<bool>& stop,
                                                      Deadline deadline) {
  for (; !deadline.passed() && !stop; std::this_thread::sleep_for(kRoundPause)) {
    const Listening listening = probe_server(deadline.at_most(kSilentHostLimit));
    if (listening == Listening::kNo) return nullptr;
    if (listening == Listening::kSilent) continue;
    if (auto store = try_candidate(at_, deadline.at_most(kAnswerLimit))) return store;
  }
  return nullptr;
}

std::shared_ptr<KeyValueStore> BuiltInBackend::reopen(const Candidates& candidates,
                                                      const std::atomic<bool>& stop,
                                                      Deadline deadline) {
  if (candidates.in_order.empty()) {
    server_.reset();
    return open(deadline);
  }
  for (; !deadline.passed(); std::this_thread::sleep_for(kRoundPause)) {
    for (size_t i = 0; i < candidates.in_order.size(); ++i) {
      if (stop) return nullptr;
      const Endpoint& candidate = candidates.in_order[i];
      if (i == candidates.own && own_listener_) return serve(std::move(own_listener_), candidate);
      if (auto store = try_candidate(candidate, deadline.at_most(call_limit()))) {
        // If this agent lost only the connection to its own server, that server goes on.
        if (to_string(candidate) != to_string(at_)) stop_serving();
        at_ = candidate;
        return store;
      }
    }
  }
  throw Error(
      ErrorCode::kTimeout,
      fmt::format("the rendezvous store at {} is gone, and none of those that could take over "
                  "answers",
                  to_string(at_)));
}

void BuiltInBackend::close(Deadline deadline) {
  if (server_) server_->wait_until_unused(deadline);
}

}  // namespace lockstep::inline internal
