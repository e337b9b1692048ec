#pragma once
// A Store is a small key-value service by which the processes of one job find each other.
//
// Use:
//   const auto deadline = lockstep::Deadline::after(std::chrono::seconds(30));
//   const auto store = lockstep::with_prefix(world.store, "example");
//   if (world.rank == 0) store->set("address", world.address, deadline);
//   const std::string address = store->get("address", deadline);  // waits for rank 0
//   lockstep::store_barrier(*store, "all have it", world.rank, world.size, deadline);
//
// Keys and values are bytes. A store belongs to one job: keys need no job name.
//
// Threads: any may make any call; a waiting call does not delay calls of other threads.
// Cost: over TCP one request and its answer for each call but set_many(), whatever it waits for.
// Errors: every call has a deadline, and throws kTimeout after it, naming the missing keys, or the
// server that does not answer. kPeerLost: the server is gone. kInvalidArgument: a limit below is
// exceeded (nothing was sent), or this process was forked from the one that connected. A store in a
// folder also throws kIo and kCorrupt.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/deadline.h"

namespace lockstep {

inline constexpr int64_t kMaxKeyBytes = 4 << 10;
inline constexpr int64_t kMaxValueBytes = 8 << 20;
/// Keys and values that one call may return; beyond it list() and watch() need a longer prefix.
inline constexpr int64_t kMaxReplyBytes = 64 << 20;
inline constexpr std::chrono::milliseconds kMaxLeaseTtl = std::chrono::hours(24);

/// The calls of every kind of store. A store in etcd or in a folder, where agents may meet, has
/// only these.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  virtual void set(std::string_view key, std::string_view value, Deadline deadline) = 0;

  struct KeyValue {
    std::string key;
    std::string value;
  };
  /// set() of each, in this order. A concurrent reader may see some of them and not yet the others.
  /// Cost: about one request per 16 MiB, independent of the number of keys.
  virtual void set_many(std::span<const KeyValue> items, Deadline deadline) = 0;

  /// set() if the key does not exist; else it keeps its value.
  virtual void set_if_missing(std::string_view key, std::string_view value, Deadline deadline) = 0;

  /// The value now, or nothing.
  virtual std::optional<std::string> try_get(std::string_view key, Deadline deadline) = 0;

  /// Sets a key with a lease, as in etcd: it exists as long as this client lives. Returns false,
  /// and changes nothing, if the key exists and this client does not hold its lease.
  ///
  /// A client is one store object (with_prefix() of it included), whatever the thread. The holder
  /// renews by another call: the same value is invisible to others (no new version), another value
  /// acts as set(). `ttl` replaces the earlier one.
  ///
  /// The key is erased, visible as any erasure,
  ///  * by erase() of any client;
  ///  * when its holder is destroyed, or its process ends: at once over TCP, and in a folder for
  ///    processes of that folder's host; otherwise after `ttl`;
  ///  * when the holder was silent for `ttl`.
  /// No thread renews it. Over TCP any request of the holder is a heartbeat for all its keys, but a
  /// call that waits is silent meanwhile. So wait for at most ttl / 3 at a time, then call
  /// set_with_lease() again, which renews in a store of any kind. A silent TCP client is
  /// disconnected: each later call throws kPeerLost, so that the caller learns of the loss of its
  /// keys. A store in memory never counts silence.
  /// set(), set_many(), Store::add() and Store::compare_set(), by any client, make a leased key a
  /// plain one that stays.
  /// Errors: kInvalidArgument if `ttl` is below 1 ms or above kMaxLeaseTtl.
  virtual bool set_with_lease(std::string_view key, std::string_view value,
                              std::chrono::milliseconds ttl, Deadline deadline) = 0;

  /// True when the key existed.
  virtual bool erase(std::string_view key, Deadline deadline) = 0;

  /// Keys that begin with `prefix`, sorted.
  virtual std::vector<std::string> list(std::string_view prefix, Deadline deadline) = 0;

  struct Change {
    std::string key;
    std::optional<std::string> value;  ///< Nothing: the key was erased.
  };
  struct Changes {
    uint64_t version = 0;         ///< Pass it to the next call.
    std::vector<Change> changes;  ///< Last state of each key changed since; sorted by key.
  };
  /// Waits until a key that begins with `prefix` differs from its state at `since`, then returns
  /// the changes. With 0 for `since` it compares with an empty store, so that the first call
  /// returns all keys. Returns an empty list if the deadline passes first: silence is not an error
  /// here.
  /// Errors: kInvalidArgument if more than 65,536 keys have been erased since `since`, so that the
  /// changes are no longer known; begin with 0 then.
  virtual Changes watch(std::string_view prefix, uint64_t since, Deadline deadline) = 0;
};

/// A store in memory or over TCP, as World::store: waits for keys, counters and swaps too.
class Store : public KeyValueStore {
 public:
  /// Waits for the key, then returns its value.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;

  /// Adds to a counter (decimal text; a missing key counts as 0) and returns the new value.
  /// Errors: kInvalidArgument when the key holds something else; it is left as it was.
  virtual int64_t add(std::string_view key, int64_t delta, Deadline deadline) = 0;

  struct Swap {
    bool swapped = false;
    std::optional<std::string> value;  ///< The key's value after the call; nothing: no such key.
  };
  /// Sets `desired` if the key holds `expected` (nothing: if the key does not exist).
  virtual Swap compare_set(std::string_view key, const std::optional<std::string>& expected,
                           std::string_view desired, Deadline deadline) = 0;

  /// Waits until all keys exist at the same time. kTimeout lists the missing ones.
  virtual void wait(std::span<const std::string> keys, Deadline deadline) = 0;

  /// Sets `own`, which must not exist, then waits as wait(). False if `own` exists: nothing was
  /// done. One request for both, as for a barrier, where all ranks arrive at once.
  virtual bool arrive(std::string_view own, std::string_view value,
                      std::span<const std::string> awaited, Deadline deadline) = 0;

  /// True when all keys exist now.
  virtual bool check(std::span<const std::string> keys, Deadline deadline) = 0;
};

/// All keys under "PREFIX/" of another store, as a separate store.
std::shared_ptr<Store> with_prefix(std::shared_ptr<Store> store, std::string prefix);
std::shared_ptr<KeyValueStore> with_prefix(std::shared_ptr<KeyValueStore> store,
                                           std::string prefix);

/// Returns when `size` ranks have called it with the same `name`; a name is good for one barrier.
/// Cost: one call of arrive() for each rank, and one set() of rank 0.
/// Errors: kTimeout naming the ranks that did not come; kInvalidArgument for a rank outside
/// [0, size), or one that has come before.
void store_barrier(Store& store, std::string_view name, int rank, int size, Deadline deadline);

}  // namespace lockstep
