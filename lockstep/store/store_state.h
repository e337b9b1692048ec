#pragma once
// The state machine of a store, without threads, sockets or clocks: requests go in, answers come
// out. The memory store calls it under a lock, the TCP server from its one thread.

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/store/request.h"

namespace lockstep::inline internal {

/// Addressee of an answer. The caller chooses both numbers; one request at a time uses a pair.
struct StoreTicket {
  uint64_t client = 0;
  uint64_t request = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the 0 is in compiler-generated code
  auto operator<=>(const StoreTicket&) const = default;
};

struct StoreAnswer {
  StoreTicket to;
  StoreReply reply;
};

/// Keys, values, and waits for them. Not thread-safe.
class StoreState {
 public:
  /// Carries out `request` (of an op with keys). Returns the answers due now: to the caller, unless
  /// it has to wait, and then to waits that ended with it.
  std::vector<StoreAnswer> submit(StoreTicket from, StoreRequest request);

  /// Ends the wait of `ticket`: its reply, or nothing if it does not wait (any more).
  std::optional<StoreReply> cancel(StoreTicket ticket);

  /// Removes every wait of a lost client and erases its leased keys. Returns the answers due
  /// because of that, never to this client.
  std::vector<StoreAnswer> drop_client(uint64_t client);

  /// A client's leased keys with their times to live; null if there are none. Time is up to the
  /// caller: a client silent for the shortest of them must be dropped.
  using LeasedKeys = std::map<std::string, std::chrono::milliseconds, std::less<>>;
  const LeasedKeys* leased_by(uint64_t client) const;
  std::optional<std::chrono::milliseconds> shortest_ttl(uint64_t client) const;
  /// All clients with leased keys.
  std::vector<uint64_t> holders() const;

  size_t num_waiting() const { return waiters_.size(); }

 private:
  struct Entry {
    std::optional<std::string> value;  ///< Nothing: erased; kept so that watchers learn of it.
    uint64_t version = 0;              ///< Of the last change.
    std::optional<uint64_t> holder;    ///< The client that the key lives and dies with.
  };
  struct Waiter {
    StoreRequest request;
    size_t next_key = 0;  ///< get, wait: the missing key under which it is filed.
  };
  using Answers = std::vector<StoreAnswer>;
  using Tickets = std::set<StoreTicket>;

  std::optional<StoreReply> execute(uint64_t client, const StoreRequest& request, Answers& woken);
  StoreReply add(const StoreRequest& request, Answers& woken);
  StoreReply compare_set(const StoreRequest& request, Answers& woken);
  std::optional<StoreReply> arrive(const StoreRequest& request, Answers& woken);
  StoreReply set_with_lease(uint64_t client, const StoreRequest& request, Answers& woken);
  StoreReply erase(const std::string& key, Answers& woken);
  StoreReply list(std::string_view prefix) const;
  std::optional<StoreReply> watch(const StoreRequest& request) const;

  Entry& put(const std::string& key, std::string value, Answers& woken);
  void release(const std::string& key, Entry& entry);
  void record_change(const std::string& key, Entry& entry, Answers& woken);
  void forget_old_erasures();
  void wake_waiters(const std::string& key, Answers& woken);
  void wake_watchers(const std::string& key, const Entry& entry, Answers& woken);

  const std::string* find(std::string_view key) const;
  std::optional<size_t> next_missing(const StoreRequest& request, size_t from) const;
  StoreReply found(const StoreRequest& request) const;
  void park(StoreTicket ticket, StoreRequest request);
  void unfile(StoreTicket ticket, const Waiter& waiter);

  std::map<std::string, Entry, std::less<>> entries_;
  uint64_t version_ = 0;
  uint64_t forgotten_version_ = 0;  ///< Erasures up to here may be unknown.
  std::deque<std::pair<uint64_t, std::string>> erasures_;
  std::map<uint64_t, LeasedKeys> leased_;  ///< By client; agrees with Entry::holder.
  std::map<StoreTicket, Waiter> waiters_;
  std::unordered_map<std::string, Tickets> waiting_for_key_;
  std::map<std::string, Tickets> watching_prefix_;
};

}  // namespace lockstep::inline internal
