#pragma once
// The store that connect_etcd_store() returns; see etcd_store.h.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "lockstep/base/mutex.h"
#include "lockstep/error.h"
#include "lockstep/store/etcd/etcd_client.h"
#include "lockstep/store/request_store.h"

namespace lockstep::inline internal {

/// The keys that the last watch has delivered to its caller. A watch may be silent while etcd
/// compacts its history. Then a comparison with these keys shows which ones have been erased.
class DeliveredKeys {
 public:
  /// A watch of `prefix` from version `since` returns `reply`. It begins with 0, or goes on.
  void note(const std::string& prefix, int64_t since, const StoreReply& reply);
  /// Those below `prefix` at `version`. Nothing: the last watch was another.
  std::optional<std::set<std::string>> at(const std::string& prefix, int64_t version) const;

 private:
  bool follows(const std::string& prefix, int64_t version) const;

  std::string prefix_;
  int64_t version_ = 0;
  std::set<std::string> keys_;
};

/// Below the root, "k/" begins the keys.
class EtcdStore final : public BasicRequestStore<KeyValueStore> {
 public:
  explicit EtcdStore(const EtcdOptions& options);
  ~EtcdStore() override;  ///< Releases its keys, within a second or not at all.
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  /// Errors: as connect_etcd_store().
  void try_out(Deadline deadline);

 private:
  StoreReply call(StoreRequest request, Deadline deadline) override;
  std::string name() const override { return "store " + client_.name(); }

  StoreReply set_all(const StoreRequest& request, Deadline deadline);
  StoreReply remove(const std::string& key, Deadline deadline);
  StoreReply keys_below_prefix(const StoreRequest& request, Deadline deadline);
  StoreReply changes_below(const StoreRequest& request, Deadline deadline);
  bool may_miss(const etcd::KeyRange& keys, int64_t version, Deadline deadline);
  std::optional<std::set<std::string>> delivered_at(const std::string& prefix, int64_t version);
  void note_delivered(const std::string& prefix, int64_t since, const StoreReply& reply);

  class LeaseTurn;
  StoreReply put_with_lease(const StoreRequest& request, Deadline deadline);
  int64_t lease_of(int64_t ttl_s, Deadline deadline) LOCKSTEP_REQUIRES(lease_mutex_);
  int64_t grant(int64_t ttl_s, Deadline deadline);
  void renew(const std::string& key, Deadline deadline) LOCKSTEP_REQUIRES(lease_mutex_);
  bool is_unchanged(const std::string& key, const std::string& value, Deadline deadline)
      LOCKSTEP_REQUIRES(lease_mutex_);
  bool is_own(int64_t lease) const LOCKSTEP_REQUIRES(lease_mutex_);

  std::string full(std::string_view key) const { return root_ + "k/" + std::string(key); }
  std::string ask(const char* path, const std::string& body, Deadline deadline);
  etcd::RangeAnswer range(const etcd::KeyRange& keys, Deadline deadline, bool keys_only = false);
  void transact(const etcd::Transaction& transaction, Deadline deadline);
  [[noreturn]] void rethrow_by_name(const Error& error) const;
  void check_lost();

  const std::string root_;
  EtcdClient client_;

  Mutex lease_mutex_;  ///< One set_with_lease() at a time.
  std::map<int64_t, int64_t> leases_ LOCKSTEP_GUARDED_BY(lease_mutex_);  ///< By time to live.
  struct Leased {
    int64_t lease = 0;
    std::string value;  ///< This client's last value.
  };
  std::map<std::string, Leased> leased_ LOCKSTEP_GUARDED_BY(lease_mutex_);
  std::map<int64_t, Deadline> renewed_ LOCKSTEP_GUARDED_BY(lease_mutex_);  ///< Fresh until then.

  Mutex mutex_;
  std::string lost_ LOCKSTEP_GUARDED_BY(mutex_);  ///< Why this client was disconnected; empty: it
                                                  ///< was not.
  DeliveredKeys delivered_ LOCKSTEP_GUARDED_BY(mutex_);
  bool lease_call_runs_ LOCKSTEP_GUARDED_BY(mutex_) = false;  ///< Of a thread.
  CondVar lease_call_ended_;
};

}  // namespace lockstep::inline internal
