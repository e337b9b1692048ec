#include "lockstep/store/request_store.h"

#include <fmt/format.h>

#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

StoreRequest make_request(StoreOp op, std::string_view key) {
  StoreRequest request;
  request.op = op;
  request.keys.emplace_back(key);
  return request;
}

StoreRequest make_request(StoreOp op, std::span<const std::string> keys) {
  StoreRequest request;
  request.op = op;
  request.keys.assign(keys.begin(), keys.end());
  return request;
}

std::string name_keys(const std::vector<Store::Change>& items) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < items.size() && i < kShown; ++i)
    text += (i == 0 ? "" : ", ") + quote_key(items[i].key);
  if (items.size() > kShown) text += fmt::format(" and {} more", items.size() - kShown);
  return text;
}

}  // namespace

template <class Interface>
StoreReply BasicRequestStore<Interface>::ask(StoreRequest request, Deadline deadline) {
  if (in_child()) {
    throw Error(ErrorCode::kInvalidArgument,
                name() +
                    ": this process was forked from the one that connected to it, and needs a "
                    "connection of its own");
  }
  check_limits(request);
  const StoreOp op = request.op;
  const size_t num_keys = request.keys.size();
  StoreReply reply = call(std::move(request), deadline);
  if (reply.status == StoreReply::Status::kRefused) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: {}: {}", name(), to_string(op), reply.text));
  }
  if (reply.status == StoreReply::Status::kTimedOut) {
    throw Error(ErrorCode::kTimeout,
                fmt::format("{}: {}: {} of {} keys did not come in time: {}", name(), to_string(op),
                            reply.items.size(), num_keys, name_keys(reply.items)));
  }
  return reply;
}

template <class Interface>
void BasicRequestStore<Interface>::set(std::string_view key, std::string_view value,
                                       Deadline deadline) {
  StoreRequest request = make_request(StoreOp::kSet, key);
  request.value = value;
  ask(std::move(request), deadline);
}

template <class Interface>
void BasicRequestStore<Interface>::set_if_missing(std::string_view key, std::string_view value,
                                                  Deadline deadline) {
  StoreRequest request = make_request(StoreOp::kCompareSet, key);
  request.value = value;
  ask(std::move(request), deadline);
}

// Sends as many keys in a request as the limit allows. A key that exceeds a limit by itself goes
// alone, and is refused by name.
template <class Interface>
void BasicRequestStore<Interface>::set_many(std::span<const KeyValueStore::KeyValue> items,
                                            Deadline deadline) {
  constexpr int64_t kRoom = kMaxRequestBytes - (1 << 10);
  StoreRequest request;
  request.op = StoreOp::kSetMany;
  int64_t bytes = 0;
  for (const auto& item : items) {
    constexpr int64_t kPerItem = 16;
    const auto size = static_cast<int64_t>(item.key.size() + item.value.size()) + kPerItem;
    if (!request.keys.empty() && bytes + size > kRoom) {
      ask(request, deadline);
      request.keys.clear();
      request.values.clear();
      bytes = 0;
    }
    request.keys.push_back(item.key);
    request.values.push_back(item.value);
    bytes += size;
  }
  if (!request.keys.empty()) ask(std::move(request), deadline);
}

template <class Interface>
std::optional<std::string> BasicRequestStore<Interface>::try_get(std::string_view key,
                                                                 Deadline deadline) {
  return ask(make_request(StoreOp::kTryGet, key), deadline).items.at(0).value;
}

template <class Interface>
bool BasicRequestStore<Interface>::set_with_lease(std::string_view key, std::string_view value,
                                                  std::chrono::milliseconds ttl,
                                                  Deadline deadline) {
  StoreRequest request = make_request(StoreOp::kSetWithLease, key);
  request.value = value;
  request.number = ttl.count();
  return ask(std::move(request), deadline).yes;
}

template <class Interface>
bool BasicRequestStore<Interface>::erase(std::string_view key, Deadline deadline) {
  return ask(make_request(StoreOp::kErase, key), deadline).yes;
}

template <class Interface>
std::vector<std::string> BasicRequestStore<Interface>::list(std::string_view prefix,
                                                            Deadline deadline) {
  std::vector<std::string> keys;
  for (auto& item : ask(make_request(StoreOp::kList, prefix), deadline).items)
    keys.push_back(std::move(item.key));
  return keys;
}

template <class Interface>
KeyValueStore::Changes BasicRequestStore<Interface>::watch(std::string_view prefix, uint64_t since,
                                                           Deadline deadline) {
  StoreRequest request = make_request(StoreOp::kWatch, prefix);
  request.number = static_cast<int64_t>(since);
  StoreReply reply = ask(std::move(request), deadline);
  return {static_cast<uint64_t>(reply.number), std::move(reply.items)};
}

template class BasicRequestStore<KeyValueStore>;
template class BasicRequestStore<Store>;

std::string RequestStore::get(std::string_view key, Deadline deadline) {
  return ask(make_request(StoreOp::kGet, key), deadline).items.at(0).value.value();
}

int64_t RequestStore::add(std::string_view key, int64_t delta, Deadline deadline) {
  StoreRequest request = make_request(StoreOp::kAdd, key);
  request.number = delta;
  return ask(std::move(request), deadline).number;
}

Store::Swap RequestStore::compare_set(std::string_view key,
                                      const std::optional<std::string>& expected,
                                      std::string_view desired, Deadline deadline) {
  StoreRequest request = make_request(StoreOp::kCompareSet, key);
  request.expected = expected;
  request.value = desired;
  StoreReply reply = ask(std::move(request), deadline);
  return {reply.yes, std::move(reply.items.at(0).value)};
}

void RequestStore::wait(std::span<const std::string> keys, Deadline deadline) {
  ask(make_request(StoreOp::kWait, keys), deadline);
}

bool RequestStore::arrive(std::string_view own, std::string_view value,
                          std::span<const std::string> awaited, Deadline deadline) {
  StoreRequest request;
  request.op = StoreOp::kArrive;
  request.keys.reserve(awaited.size() + 1);
  request.keys.emplace_back(own);
  request.keys.insert(request.keys.end(), awaited.begin(), awaited.end());
  request.value = value;
  return ask(std::move(request), deadline).yes;
}

bool RequestStore::check(std::span<const std::string> keys, Deadline deadline) {
  return ask(make_request(StoreOp::kCheck, keys), deadline).yes;
}

}  // namespace lockstep::inline internal
