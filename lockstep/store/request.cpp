#include "lockstep/store/request.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "lockstep/base/number.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

constexpr std::array<std::string_view, kNumStoreOps> kOpNames = {
    "set",   "set_many", "get",  "try_get", "add",    "compare_set", "set_with_lease", "wait",
    "check", "erase",    "list", "watch",   "arrive", "cancel",      "open_call_slot"};

/// Each string has a length and a flag.
constexpr int64_t kPerString = 8;

Error too_large(StoreOp op, const std::string& what, size_t bytes, int64_t limit) {
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("store {}: {} has {} bytes, at most {} are allowed", to_string(op), what,
                           bytes, limit));
}

void check_value(const StoreRequest& request, const std::string& value, size_t index = 0) {
  if (value.size() <= static_cast<size_t>(kMaxValueBytes)) return;
  const std::string key = quote_key(index < request.keys.size() ? request.keys[index] : "");
  throw too_large(request.op, "the value of key " + key, value.size(), kMaxValueBytes);
}

void check_ttl(const StoreRequest& request) {
  if (request.number >= 1 && request.number <= kMaxLeaseTtl.count()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("store set_with_lease {}: a time to live of {} ms, 1 to {} are allowed",
                          quote_key(request.keys.empty() ? "" : request.keys[0]), request.number,
                          kMaxLeaseTtl.count()));
}

std::optional<int64_t> parse_counter(const std::string& text) {
  return as_number<int64_t>(text);
}

}  // namespace

std::string_view to_string(StoreOp op) {
  return kOpNames.at(static_cast<size_t>(op));
}

bool takes_many_keys(StoreOp op) {
  return op == StoreOp::kWait || op == StoreOp::kCheck || op == StoreOp::kSetMany ||
         op == StoreOp::kArrive;
}

int64_t payload_bytes(const StoreRequest& request) {
  size_t bytes = request.value.size() + (request.expected ? request.expected->size() : 0);
  for (const auto& key : request.keys) bytes += key.size();
  for (const auto& value : request.values) bytes += value.size();
  const size_t strings = request.keys.size() + request.values.size() + 2;
  return static_cast<int64_t>(bytes) + kPerString * static_cast<int64_t>(strings);
}

int64_t payload_bytes(const StoreReply& reply) {
  size_t bytes = reply.text.size();
  for (const auto& item : reply.items)
    bytes += item.key.size() + (item.value ? item.value->size() : 0);
  return static_cast<int64_t>(bytes) +
         kPerString * (2 * static_cast<int64_t>(reply.items.size()) + 1);
}

void check_limits(const StoreRequest& request) {
  for (const auto& key : request.keys) {
    if (key.size() > static_cast<size_t>(kMaxKeyBytes))
      throw too_large(request.op, "key " + quote_key(key), key.size(), kMaxKeyBytes);
  }
  check_value(request, request.value);
  if (request.expected) check_value(request, *request.expected);
  for (size_t i = 0; i < request.values.size(); ++i) check_value(request, request.values[i], i);
  if (request.op == StoreOp::kSetWithLease) check_ttl(request);
  const int64_t bytes = payload_bytes(request);
  if (bytes > kMaxRequestBytes) {
    throw too_large(request.op, fmt::format("a list of {} keys", request.keys.size()),
                    static_cast<size_t>(bytes), kMaxRequestBytes);
  }
}

StoreReply refused(std::string why) {
  StoreReply reply;
  reply.status = StoreReply::Status::kRefused;
  reply.text = std::move(why);
  return reply;
}

StoreReply refused_as_too_large(std::string_view prefix) {
  return refused(fmt::format("more than {} bytes begin with prefix {}; use a longer prefix",
                             kMaxReplyBytes, quote_key(prefix)));
}

StoreReply add_to_counter(std::string_view key, const std::string* held, int64_t delta) {
  const auto before = held != nullptr ? parse_counter(*held) : 0;
  if (!before) return refused(fmt::format("key {} does not hold a counter", quote_key(key)));
  StoreReply reply;
  if (__builtin_add_overflow(*before, delta, &reply.number))
    return refused(fmt::format("the counter {} would leave the range of 64 bits", quote_key(key)));
  return reply;
}

std::string quote_key(std::string_view key) {
  constexpr size_t kShown = 80;
  std::string text = "'";
  for (const char c : key.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isprint(byte) != 0) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  if (key.size() > kShown) text += "...";
  return text + "'";
}

}  // namespace lockstep::inline internal
