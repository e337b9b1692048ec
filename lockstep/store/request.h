#pragma once
// A store's requests and replies as values, shared by all kinds of store. Users call Store; this is
// for implementations.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/store.h"

namespace lockstep::inline internal {

enum class StoreOp : uint8_t {
  kSet,           ///< keys[0], value
  kSetMany,       ///< keys, values: as many
  kGet,           ///< keys[0]; waits
  kTryGet,        ///< keys[0]
  kAdd,           ///< keys[0], number
  kCompareSet,    ///< keys[0], expected, value; set_if_missing: nothing is expected
  kSetWithLease,  ///< keys[0], value, number: time to live in ms
  kWait,          ///< keys; waits
  kCheck,         ///< keys
  kErase,         ///< keys[0]
  kList,          ///< keys[0]: the prefix
  kWatch,         ///< keys[0]: the prefix, number: since; waits
  kArrive,        ///< keys: the caller's own, then the awaited ones; value; waits
  kCancel,        ///< Ends the wait of the request with this request's id (0: none); has no reply.
  kOpenCallSlot,  ///< Over TCP's shortcut: asks for shared memory (tcp/call_slot.h).
};
inline constexpr int kNumStoreOps = static_cast<int>(StoreOp::kOpenCallSlot) + 1;

/// "set", "try_get" and so on: the names of Store's functions.
std::string_view to_string(StoreOp op);
/// True for operations that take any number of keys (kArrive: at least one); the others take
/// exactly one (kCancel, kOpenCallSlot: none).
bool takes_many_keys(StoreOp op);

struct StoreRequest {
  StoreOp op = StoreOp::kSet;
  std::vector<std::string> keys;
  std::vector<std::string> values;  ///< set_many only.
  std::string value;
  std::optional<std::string> expected;
  int64_t number = 0;
};

struct StoreReply {
  enum class Status : uint8_t {
    kDone,
    kTimedOut,  ///< A wait was ended by kCancel; `items` has the missing keys.
    kRefused,   ///< Nothing was done; `text` has the reason.
  };
  Status status = Status::kDone;
  bool yes = false;    ///< Swapped; all there; existed; leased; opened.
  int64_t number = 0;  ///< add: the sum. watch: the version. open_call_slot: the index.
  std::string text;    ///< Reason of kRefused.
  std::vector<Store::Change> items;  ///< get, try_get, compare_set: one. list, watch: any number.
};

/// Bound of one request, as kMaxReplyBytes of a reply: neither end can make the other hold more.
inline constexpr int64_t kMaxRequestBytes = 2 * kMaxValueBytes + (1 << 20);

/// Bytes of keys and values, with their overhead on the wire, as the bounds above count them.
int64_t payload_bytes(const StoreRequest& request);
int64_t payload_bytes(const StoreReply& reply);

/// Errors: kInvalidArgument naming the operation, the key and the limit that is exceeded.
void check_limits(const StoreRequest& request);

// Replies of more than one kind of store.
StoreReply refused(std::string why);
/// The keys with `prefix` exceed a reply's limit.
StoreReply refused_as_too_large(std::string_view prefix);
/// Result of add() of `delta` to `held` (null: no such key): the sum, or the reason why there is
/// none.
StoreReply add_to_counter(std::string_view key, const std::string* held, int64_t delta);

/// 'key' for messages: unprintable bytes escaped, long keys cut.
std::string quote_key(std::string_view key);

}  // namespace lockstep::inline internal
