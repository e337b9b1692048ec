#pragma once
// What an etcd server is asked and what it answers, over the JSON gateway of its v3 API: keys and
// values in base64, 64-bit numbers as text, what is 0 or empty left out. Pure.
// Source: etcd's rpc.proto and kv.proto, as served by etcd 3.4 and later below /v3/.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::etcd {

using Json = nlohmann::json;

/// Keys from `first` up to, and without, `end`; an empty end: `first` alone.
struct KeyRange {
  std::string first;
  std::string end;
};
/// All that begin with `prefix`, which must not be empty.
KeyRange keys_below(std::string prefix);

// Operations: bodies of calls by themselves, and parts of a transaction.
Json range(const KeyRange& keys, bool keys_only = false, int64_t revision = 0);
/// Of these keys the one that was changed last, without its value.
Json newest(const KeyRange& keys);
Json put(std::string_view key, std::string_view value, int64_t lease = 0);
Json erase(std::string_view key);

// Conditions of a transaction.
Json if_missing(std::string_view key);
Json if_value(std::string_view key, std::string_view value);
Json if_revision(std::string_view key, int64_t mod_revision);

/// A transaction: `then` where all conditions hold, else `otherwise`; lists of puts(), ranges().
struct Transaction {
  std::vector<Json> conditions;
  std::vector<Json> puts;    ///< Done where the conditions hold,
  std::vector<Json> ranges;  ///< then these;
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
  int64_t revision = 0;  ///< Of the whole store when it answered.
  std::vector<Item> items;
};
struct TransactionAnswer {
  int64_t revision = 0;
  bool succeeded = false;
  std::vector<RangeAnswer> ranges;
  /// What the first range of the transaction found. Errors: kCorrupt where etcd left it out.
  std::vector<Item>& found();
};
struct Event {
  Item item;
  bool erased = false;
};
struct WatchAnswer {
  bool canceled = false;
  int64_t revision = 0;          ///< Of the whole store when it said so.
  int64_t compact_revision = 0;  ///< Not 0: the wanted start is older than what etcd remembers.
  std::string reason;
  std::vector<Event> events;
};
struct Refusal {
  int64_t code = 0;  ///< gRPC's.
  std::string message;
};

// What a server has sent. Errors: kCorrupt when it is something else.
RangeAnswer parse_range(std::string_view body);
int64_t parse_deleted(std::string_view body);
TransactionAnswer parse_transaction(std::string_view body);
int64_t parse_lease_ttl(std::string_view body);  ///< 0: there is no such lease.
WatchAnswer parse_watch(std::string_view line);
/// Nothing when it is no refusal by etcd.
std::optional<Refusal> parse_refusal(std::string_view body);

/// gRPC's codes that come here.
inline constexpr int64_t kDeadlineExceeded = 4;
inline constexpr int64_t kNotFound = 5;
inline constexpr int64_t kFailedPrecondition = 9;
inline constexpr int64_t kUnavailable = 14;

/// True when another attempt, here or at another member, may be served.
bool worth_another_attempt(const Refusal& refusal);

}  // namespace lockstep::etcd
