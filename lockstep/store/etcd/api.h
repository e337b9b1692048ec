#pragma once
// Requests to an etcd server and its answers, over the JSON gateway of its v3 API. Keys and values
// are base64, 64-bit numbers are text, zero and empty members are left out. Pure. Source: etcd's
// rpc.proto and kv.proto, as served by etcd 3.4 and later below /v3/.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::etcd {

using Json = nlohmann::json;

/// Keys from `first` up to, but without, `end`; with an empty end `first` alone.
struct KeyRange {
  std::string first;
  std::string end;
};
/// All keys that begin with `prefix`, which must not be empty.
KeyRange keys_below(std::string prefix);

// Operations: bodies of separate calls, and parts of a transaction.
Json range(const KeyRange& keys, bool keys_only = false);
/// The most recently changed of these keys, without its value.
Json newest(const KeyRange& keys);
Json put(std::string_view key, std::string_view value, int64_t lease = 0);
Json erase(std::string_view key);

// Conditions of a transaction.
Json if_missing(std::string_view key);
Json if_revision(std::string_view key, int64_t mod_revision);

/// A transaction: `puts` if all conditions hold, else `else_ranges`.
struct Transaction {
  std::vector<Json> conditions;
  std::vector<Json> puts;
  std::vector<Json> else_ranges;
  std::string body() const;
};

std::string watch_body(const KeyRange& keys, int64_t start_revision);
std::string lease_grant_body(int64_t id, int64_t ttl_s);
std::string lease_body(int64_t id);  ///< Keep alive, revoke.

struct Item {
  std::string key;
  std::string value;
  int64_t mod_revision = 0;
  int64_t lease = 0;
};
struct RangeAnswer {
  int64_t revision = 0;  ///< Of the whole store at the answer.
  std::vector<Item> items;
};
struct TransactionAnswer {
  bool succeeded = false;
  std::vector<RangeAnswer> ranges;
  /// The result of the transaction's first range. Errors: kCorrupt if etcd left it out.
  std::vector<Item>& found();
};
struct Event {
  Item item;
  bool erased = false;
};
struct WatchAnswer {
  bool failed = false;  ///< The connection to etcd broke off, for `reason`; no more answers come.
  bool canceled = false;
  int64_t revision = 0;          ///< Of the whole store at the answer.
  int64_t compact_revision = 0;  ///< Not 0: the requested start is older than etcd's history.
  std::string reason;
  std::vector<Event> events;
};
struct Refusal {
  int64_t code = 0;  ///< The gRPC status code.
  std::string message;
};

// Parsers of a server's answers. Errors: kCorrupt if the text is something else.
RangeAnswer parse_range(std::string_view body);
int64_t parse_deleted(std::string_view body);
TransactionAnswer parse_transaction(std::string_view body);
int64_t parse_lease_ttl(std::string_view body);  ///< 0: there is no such lease.
WatchAnswer parse_watch(std::string_view line);
/// Nothing if it is not an error of etcd.
std::optional<Refusal> parse_refusal(std::string_view body);

/// The gRPC status codes in use.
inline constexpr int64_t kCancelled = 1;  ///< By the gateway of a server that ends.
inline constexpr int64_t kDeadlineExceeded = 4;
inline constexpr int64_t kNotFound = 5;
inline constexpr int64_t kFailedPrecondition = 9;
inline constexpr int64_t kUnavailable = 14;

/// True if another attempt, here or at another member, may succeed.
bool worth_another_attempt(const Refusal& refusal);

}  // namespace lockstep::etcd
