// The part of EtcdStore that uses leases.

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/store/etcd/etcd_store_impl.h"

namespace lockstep::inline internal {
namespace {

/// etcd rounds smaller times to live up to this.
constexpr int64_t kLeastTtl = 2;
/// Of each second of a lease: within this time another renewal is not worth a call.
constexpr auto kFreshPart = 20ms;

int64_t random_lease() {
  std::random_device random;
  const uint64_t bits = static_cast<uint64_t>(random()) << 32 | random();
  return static_cast<int64_t>(bits >> 1) | 1;
}

}  // namespace

EtcdStore::~EtcdStore() {
  const Deadline deadline = Deadline::after(1s);
  std::vector<int64_t> leases = {};
  {
    const MutexLock lock(lease_mutex_);
    for (const auto& [ttl, lease] : leases_) leases.push_back(lease);
  }
  for (const int64_t lease : leases) {
    try {
      client_.call("/v3/lease/revoke", etcd::lease_body(lease), deadline);
    } catch (const std::exception&) {
      return;  // its keys end with their lease
    }
  }
}

/// Grants a lease with its own random number, so that a second attempt does not make another lease.
int64_t EtcdStore::grant(int64_t ttl_s, Deadline deadline) {
  const int64_t id = random_lease();
  const auto answer = client_.call("/v3/lease/grant", etcd::lease_grant_body(id, ttl_s), deadline);
  const bool known =
      answer.in_doubt && answer.refusal && answer.refusal->code == etcd::kFailedPrecondition;
  if (answer.refusal && !known)
    throw Error(ErrorCode::kUnavailable, name() + " refuses: " + answer.refusal->message);
  return id;
}

int64_t EtcdStore::lease_of(int64_t ttl_s, Deadline deadline) {
  const auto it = leases_.find(ttl_s);
  if (it != leases_.end()) return it->second;
  return leases_[ttl_s] = grant(ttl_s, deadline);
}

bool EtcdStore::is_own(int64_t lease) const {
  return std::any_of(leases_.begin(), leases_.end(),
                     [&](const auto& each) { return each.second == lease; });
}

/// Renews the lease of a key; one renewal is enough for all keys that are renewed together.
/// Errors: kPeerLost if it came too late.
void EtcdStore::renew(const std::string& key, Deadline deadline) {
  const int64_t lease = leased_.at(key).lease;
  const auto fresh = renewed_.find(lease);
  if (fresh != renewed_.end() && !fresh->second.passed()) return;
  const Deadline::Clock::time_point began = Deadline::Clock::now();
  const std::string body = ask("/v3/lease/keepalive", etcd::lease_body(lease), deadline);
  if (const int64_t ttl_s = etcd::parse_lease_ttl(body); ttl_s > 0) {
    renewed_.insert_or_assign(lease, Deadline::at(began + ttl_s * kFreshPart));
    return;
  }
  const auto it = std::find_if(leases_.begin(), leases_.end(),
                               [&](const auto& each) { return each.second == lease; });
  {
    const MutexLock lock(mutex_);
    lost_ = fmt::format(
        "has disconnected this client: nothing was heard of it for {} s, so its "
        "keys are erased ({})",
        it->first, quote_key(key));
  }
  check_lost();
}

/// Whether the key still has this value, after renew(). Then no write is needed, which every member
/// would have to agree on.
bool EtcdStore::is_unchanged(const std::string& key, const std::string& value, Deadline deadline) {
  const Leased& leased = leased_.at(key);
  if (leased.value != value) return false;
  const auto found = range({full(key), ""}, deadline).items;
  return !found.empty() && found[0].lease == leased.lease && found[0].value == value;
}

/// One set_with_lease() at a time. Each waits for its turn until its own deadline.
class EtcdStore::LeaseTurn {
 public:
  LeaseTurn(EtcdStore& store, const std::string& key, Deadline deadline) : store_(store) {
    MutexLock lock(store_.mutex_);
    while (store_.lease_call_runs_) {
      if (deadline.passed()) {
        throw Error(ErrorCode::kTimeout,
                    fmt::format("{} does not answer: set_with_lease {}, after another",
                                store_.name(), quote_key(key)));
      }
      store_.lease_call_ended_.wait_until(lock, deadline.when());
    }
    store_.lease_call_runs_ = true;
  }
  ~LeaseTurn() {
    const MutexLock lock(store_.mutex_);
    store_.lease_call_runs_ = false;
    store_.lease_call_ended_.notify_one();
  }
  LeaseTurn(const LeaseTurn&) = delete;
  LeaseTurn& operator=(const LeaseTurn&) = delete;

 private:
  EtcdStore& store_;
};

StoreReply EtcdStore::put_with_lease(const StoreRequest& request, Deadline deadline) {
  const std::string& name = request.keys[0];
  const LeaseTurn turn(*this, name, deadline);
  const std::string key = full(name);
  const int64_t ttl_s = std::max(kLeastTtl, (request.number + 999) / 1000);
  StoreReply reply;
  const MutexLock lock(lease_mutex_);
  if (leased_.contains(name)) {
    renew(name, deadline);
    reply.yes = is_unchanged(name, request.value, deadline);
    if (reply.yes) return reply;
  }
  etcd::Transaction write;
  write.conditions.push_back(etcd::if_missing(key));
  write.else_ranges.push_back(etcd::range({key, ""}));
  while (true) {
    const int64_t lease = lease_of(ttl_s, deadline);
    write.puts = {etcd::put(key, request.value, lease)};
    const auto answer = client_.call("/v3/kv/txn", write.body(), deadline);
    if (answer.refusal && answer.refusal->code == etcd::kNotFound) {
      leases_.erase(ttl_s);  // it expired while no key used it
      continue;
    }
    if (answer.refusal)
      throw Error(ErrorCode::kInvalidArgument,
                  this->name() + " refuses: " + answer.refusal->message);
    auto result = etcd::parse_transaction(answer.body);
    reply.yes = true;
    if (result.succeeded) {
      leased_[name] = {lease, request.value};
      return reply;
    }
    const auto& found = result.found();
    if (found.empty()) {
      write.conditions = {etcd::if_missing(key)};
      continue;
    }
    reply.yes = is_own(found[0].lease);
    if (!reply.yes) leased_.erase(name);
    if (reply.yes && found[0].value == request.value)
      leased_[name] = {found[0].lease, request.value};
    if (!reply.yes || found[0].value == request.value) return reply;
    write.conditions = {etcd::if_revision(key, found[0].mod_revision)};
  }
}

}  // namespace lockstep::inline internal
