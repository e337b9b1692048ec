#pragma once
// The state of torch's TCPStore, without sockets, threads or clock: requests go in, and bytes for
// clients come out.
//
// It does what the server of PyTorch 2.13 (TCPStoreLibUvBackend.cpp) does; that differs too much
// from StoreState to be carried out by it. Values can be appended to, keys counted, a wait ends
// when each missing key has come once, and a queue with elements counts as a key. Differences,
// which no client of torch sees as long as it keeps within the limits:
// - compare_set wakes nobody if there is no such key afterwards;
// - a wait for keys of which one is a queue that has elements needs no further element;
// - there is a limit for all keys and values.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/store/torch/torch_protocol.h"

namespace lockstep::inline internal {

/// All keys and values of a store, each with its overhead.
inline constexpr size_t kMaxTorchStoreBytes = size_t{1} << 30;
inline constexpr size_t kTorchEntryBytes = 100;  ///< Overhead of a key, or of a queue's element.
/// One reply.
inline constexpr size_t kMaxTorchReplyBytes = 64 << 20;

struct TorchReply {
  uint64_t client = 0;
  std::string bytes;
};

class TorchState {
 public:
  explicit TorchState(size_t max_bytes = kMaxTorchStoreBytes) : max_bytes_(max_bytes) {}

  /// Carries out a client's request. Returns the replies due now, to any clients. Errors:
  /// kInvalidArgument (add or barrier to what is no number, a limit above). The store is unchanged
  /// then, and the client, which would wait for a reply, has to be dropped.
  std::vector<TorchReply> submit(uint64_t client, TorchRequest request);

  /// Ends the waits of a lost client.
  void drop(uint64_t client);

  size_t num_waiting() const { return waits_.size(); }
  /// Of the keys that a client waits for, with their overhead; no part of bytes().
  size_t waiting_bytes(uint64_t client) const;
  /// Of keys and values, with their overhead.
  size_t bytes() const { return bytes_; }

 private:
  struct Wait {
    std::vector<std::string> keys;
    size_t missing = 0;  ///< How many of them have not come yet.
    size_t bytes = 0;    ///< Of all keys, with their overhead.
  };
  using Replies = std::vector<TorchReply>;

  std::string answer(uint64_t client, const TorchRequest& request, Replies* woken);
  void check_room(const TorchRequest& request) const;
  bool exists(const std::string& key) const;
  bool all_exist(const std::vector<std::string>& keys) const;
  std::string_view value_of(const std::string& key) const;
  void put(const std::string& key, std::string value);
  void append(const std::string& key, const std::string& value);
  int64_t count_up(const std::string& key, int64_t by);
  int64_t erase(const std::string& key);
  std::string compare_set(const TorchRequest& request, Replies* woken);
  std::string multi_get(const TorchRequest& request) const;
  void push(const std::string& key, std::string value);
  std::string pop(const std::string& key);
  int64_t queue_length(const std::string& key) const;
  std::string list_keys() const;
  bool wait(uint64_t client, std::vector<std::string> keys);
  bool barrier(uint64_t client, const TorchRequest& request, Replies* woken);
  void park(uint64_t client, std::vector<std::string> missing);
  void wake(const std::string& key, Replies* woken);
  void wake_one(const std::string& key, Replies* woken);

  const size_t max_bytes_;
  std::map<std::string, std::string> entries_;
  std::map<std::string, std::deque<std::string>> queues_;  ///< None is empty.
  size_t bytes_ = 0;
  std::unordered_map<uint64_t, Wait> waits_;  ///< By client.
  /// The clients that wait for a key, in the order in which they came; agrees with waits_.
  std::unordered_map<std::string, std::vector<uint64_t>> waiting_;
};

}  // namespace lockstep::inline internal
