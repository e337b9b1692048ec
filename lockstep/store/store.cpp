#include "lockstep/store.h"

#include <fmt/format.h>

#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/store/missing_ranks.h"
#include "lockstep/store/request.h"

namespace lockstep {
namespace {

/// The calls of KeyValueStore. `Interface` is that, or Store.
template <class Interface>
class BasicPrefixStore : public Interface {
 public:
  BasicPrefixStore(std::shared_ptr<Interface> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix) + "/") {}

  void set(std::string_view key, std::string_view value, Deadline deadline) override {
    store_->set(full(key), value, deadline);
  }
  void set_many(std::span<const KeyValueStore::KeyValue> items, Deadline deadline) override {
    std::vector<KeyValueStore::KeyValue> prefixed(items.begin(), items.end());
    for (auto& item : prefixed) item.key.insert(0, prefix_);
    store_->set_many(prefixed, deadline);
  }
  void set_if_missing(std::string_view key, std::string_view value, Deadline deadline) override {
    store_->set_if_missing(full(key), value, deadline);
  }
  std::optional<std::string> try_get(std::string_view key, Deadline deadline) override {
    return store_->try_get(full(key), deadline);
  }
  bool set_with_lease(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                      Deadline deadline) override {
    return store_->set_with_lease(full(key), value, ttl, deadline);
  }
  bool erase(std::string_view key, Deadline deadline) override {
    return store_->erase(full(key), deadline);
  }
  std::vector<std::string> list(std::string_view prefix, Deadline deadline) override {
    auto keys = store_->list(full(prefix), deadline);
    for (auto& key : keys) key.erase(0, prefix_.size());
    return keys;
  }
  KeyValueStore::Changes watch(std::string_view prefix, uint64_t since,
                               Deadline deadline) override {
    auto result = store_->watch(full(prefix), since, deadline);
    for (auto& change : result.changes) change.key.erase(0, prefix_.size());
    return result;
  }

 protected:
  Interface& whole() const { return *store_; }
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

 private:
  std::shared_ptr<Interface> store_;
  std::string prefix_;
};

class PrefixStore final : public BasicPrefixStore<Store> {
 public:
  using BasicPrefixStore::BasicPrefixStore;

  std::string get(std::string_view key, Deadline deadline) override {
    return whole().get(full(key), deadline);
  }
  int64_t add(std::string_view key, int64_t delta, Deadline deadline) override {
    return whole().add(full(key), delta, deadline);
  }
  Swap compare_set(std::string_view key, const std::optional<std::string>& expected,
                   std::string_view desired, Deadline deadline) override {
    return whole().compare_set(full(key), expected, desired, deadline);
  }
  void wait(std::span<const std::string> keys, Deadline deadline) override {
    whole().wait(all_full(keys), deadline);
  }
  bool arrive(std::string_view own, std::string_view value, std::span<const std::string> awaited,
              Deadline deadline) override {
    return whole().arrive(full(own), value, all_full(awaited), deadline);
  }
  bool check(std::span<const std::string> keys, Deadline deadline) override {
    return whole().check(all_full(keys), deadline);
  }

 private:
  std::vector<std::string> all_full(std::span<const std::string> keys) const {
    std::vector<std::string> result;
    result.reserve(keys.size());
    for (const auto& key : keys) result.push_back(full(key));
    return result;
  }
};

/// The keys of one barrier: one for each rank, and the one that ends it.
std::string ranks_prefix(std::string_view name) {
  return fmt::format("barrier/{}/rank/", name);
}
std::string rank_key(std::string_view name, int rank) {
  return ranks_prefix(name) + std::to_string(rank);
}
std::string done_key(std::string_view name) {
  return fmt::format("barrier/{}/done", name);
}

/// Rank 0 waits for all and then sets the key that the others wait for.
std::vector<std::string> awaited_keys(std::string_view name, int own, int size) {
  if (own != 0) return {done_key(name)};
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(size));
  for (int rank = 1; rank < size; ++rank) keys.push_back(rank_key(name, rank));
  return keys;
}

}  // namespace

std::shared_ptr<Store> with_prefix(std::shared_ptr<Store> store, std::string prefix) {
  return std::make_shared<PrefixStore>(std::move(store), std::move(prefix));
}

std::shared_ptr<KeyValueStore> with_prefix(std::shared_ptr<KeyValueStore> store,
                                           std::string prefix) {
  return std::make_shared<BasicPrefixStore<KeyValueStore>>(std::move(store), std::move(prefix));
}

// One call a rank, whatever the size; missing ranks are only looked up after a timeout.
void store_barrier(Store& store, std::string_view name, int rank, int size, Deadline deadline) {
  if (rank < 0 || rank >= size) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("barrier {}: rank {} of {}", quote_key(name), rank, size));
  }
  try {
    if (!store.arrive(rank_key(name, rank), "", awaited_keys(name, rank, size), deadline)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("barrier {}: rank {} has been here before; a name serves once",
                              quote_key(name), rank));
    }
    if (rank == 0) store.set(done_key(name), "", deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    // The deadline has passed: the search for missing ranks gets a little extra time.
    const auto absent = missing_ranks(store, ranks_prefix(name), size, Deadline::after(2s));
    if (absent.empty()) return;  // the last one came just now
    throw Error(ErrorCode::kTimeout,
                fmt::format("barrier {} on rank {}: ranks {} of {} did not come in time",
                            quote_key(name), rank, rank_list(absent), size));
  }
}

}  // namespace lockstep
