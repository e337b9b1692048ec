#include "lockstep/store/torch/torch_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/store/request.h"

namespace lockstep::inline internal {
namespace {

// Replies, as c10d's TCPStoreBackend.hpp has them.
constexpr uint8_t kReady = 0;
constexpr uint8_t kNotReady = 1;
constexpr uint8_t kStopWaiting = 0;
constexpr uint8_t kWaitCanceled = 1;

template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string string_of(std::string_view text) {
  return bytes_of(static_cast<uint64_t>(text.size())).append(text);
}

[[noreturn]] void refuse_request(const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, why);
}

void check_reply(const std::string& reply) {
  if (reply.size() <= kMaxTorchReplyBytes) return;
  refuse_request(fmt::format("it asks for more than {} bytes", kMaxTorchReplyBytes));
}

}  // namespace

std::vector<TorchReply> TorchState::submit(uint64_t client, TorchRequest request) {
  check_room(request);
  Replies replies;
  std::string own;
  if (request.op == TorchOp::kWait) {
    if (wait(client, std::move(request.keys))) own = bytes_of(kStopWaiting);
  } else {
    own = answer(client, request, &replies);
  }
  if (!own.empty()) replies.push_back({client, std::move(own)});
  return replies;
}

/// The reply to the client itself; empty: none is due.
std::string TorchState::answer(uint64_t client, const TorchRequest& request, Replies* woken) {
  const auto& keys = request.keys;
  switch (request.op) {
    case TorchOp::kSet:
    case TorchOp::kMultiSet:
      for (size_t i = 0; i < keys.size(); ++i) {
        put(keys[i], request.values[i]);
        wake(keys[i], woken);
      }
      return "";
    case TorchOp::kAppend:
      append(keys[0], request.values[0]);
      wake(keys[0], woken);
      return "";
    case TorchOp::kCompareSet:
      return compare_set(request, woken);
    case TorchOp::kGet:
    case TorchOp::kMultiGet:
      return multi_get(request);
    case TorchOp::kAdd: {
      const int64_t sum = count_up(keys[0], request.number);
      wake(keys[0], woken);
      return bytes_of(sum);
    }
    case TorchOp::kCheck:
      return bytes_of(all_exist(keys) ? kReady : kNotReady);
    case TorchOp::kNumKeys:
      return bytes_of(static_cast<int64_t>(entries_.size()));
    case TorchOp::kDeleteKey:
      return bytes_of(erase(keys[0]));
    case TorchOp::kCancelWait:
      drop(client);
      return bytes_of(kWaitCanceled);
    case TorchOp::kPing:
      return bytes_of(static_cast<uint32_t>(request.number));
    case TorchOp::kQueuePush:
      push(keys[0], request.values[0]);
      wake_one(keys[0], woken);
      return "";
    case TorchOp::kQueuePop:
      return pop(keys[0]);
    case TorchOp::kQueueLen:
      return bytes_of(queue_length(keys[0]));
    case TorchOp::kListKeys:
      return list_keys();
    case TorchOp::kBarrier:
      return barrier(client, request, woken) ? bytes_of(kStopWaiting) : "";
    case TorchOp::kValidate:
    case TorchOp::kWait:
      break;
  }
  throw Error(ErrorCode::kInternal, "a request of torch's store that has no answer");
}

/// As if nothing were replaced: the store never has a part of a request.
void TorchState::check_room(const TorchRequest& request) const {
  constexpr size_t kMostDigits = 20;
  const bool counts = request.op == TorchOp::kAdd || request.op == TorchOp::kBarrier;
  if (request.values.empty() && !counts) return;
  size_t more = request.keys.size() * kTorchEntryBytes + (counts ? kMostDigits : 0);
  for (const auto& key : request.keys) more += key.size();
  for (const auto& value : request.values) more += value.size();
  if (bytes_ + more > max_bytes_) {
    refuse_request(fmt::format("the store would have more than {} bytes", max_bytes_));
  }
}

bool TorchState::exists(const std::string& key) const {
  return entries_.count(key) > 0 || queues_.count(key) > 0;
}

bool TorchState::all_exist(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](const auto& key) { return exists(key); });
}

std::string_view TorchState::value_of(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::string_view() : found->second;
}

void TorchState::put(const std::string& key, std::string value) {
  const auto [place, is_new] = entries_.try_emplace(key);
  bytes_ += value.size() - place->second.size() + (is_new ? key.size() + kTorchEntryBytes : 0);
  place->second = std::move(value);
}

void TorchState::append(const std::string& key, const std::string& value) {
  const auto [place, is_new] = entries_.try_emplace(key);
  bytes_ += value.size() + (is_new ? key.size() + kTorchEntryBytes : 0);
  place->second += value;
}

/// Adds to a counter, which is decimal text.
int64_t TorchState::count_up(const std::string& key, int64_t by) {
  const auto found = entries_.find(key);
  const StoreReply sum =
      add_to_counter(key, found == entries_.end() ? nullptr : &found->second, by);
  if (sum.status == StoreReply::Status::kRefused) refuse_request(sum.text);
  put(key, std::to_string(sum.number));
  return sum.number;
}

/// The number of keys that are erased.
int64_t TorchState::erase(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return 0;
  bytes_ -= key.size() + found->second.size() + kTorchEntryBytes;
  entries_.erase(found);
  return 1;
}

std::string TorchState::compare_set(const TorchRequest& request, Replies* woken) {
  const std::string& key = request.keys[0];
  const std::string& expected = request.values[0];
  const auto found = entries_.find(key);
  // That way torch's server answers: the caller takes it for its value.
  if (found == entries_.end() && !expected.empty()) return string_of(expected);
  if (value_of(key) == expected) put(key, request.values[1]);
  wake(key, woken);
  return string_of(value_of(key));
}

/// A missing key has an empty value.
std::string TorchState::multi_get(const TorchRequest& request) const {
  std::string reply;
  for (const auto& key : request.keys) {
    reply += string_of(value_of(key));
    check_reply(reply);
  }
  return reply;
}

void TorchState::push(const std::string& key, std::string value) {
  bytes_ += key.size() + value.size() + kTorchEntryBytes;
  queues_[key].push_back(std::move(value));
}

/// The number of elements before, and the first of them.
std::string TorchState::pop(const std::string& key) {
  const int64_t length = queue_length(key);
  if (length == 0) return bytes_of(length);
  auto& queue = queues_[key];
  const std::string first = std::move(queue.front());
  queue.pop_front();
  bytes_ -= key.size() + first.size() + kTorchEntryBytes;
  if (queue.empty()) queues_.erase(key);
  return bytes_of(length) + string_of(first);
}

int64_t TorchState::queue_length(const std::string& key) const {
  const auto found = queues_.find(key);
  return found == queues_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

std::string TorchState::list_keys() const {
  std::string reply = bytes_of(static_cast<int64_t>(entries_.size()));
  for (const auto& [key, value] : entries_) {
    reply += string_of(key);
    check_reply(reply);
  }
  return reply;
}

/// True if all keys are there; else the client waits.
bool TorchState::wait(uint64_t client, std::vector<std::string> keys) {
  keys.erase(
      std::remove_if(keys.begin(), keys.end(), [this](const auto& key) { return exists(key); }),
      keys.end());
  if (keys.empty()) return true;
  park(client, std::move(keys));
  return false;
}

/// Counts a client, and lets all go when there are enough.
bool TorchState::barrier(uint64_t client, const TorchRequest& request, Replies* woken) {
  const std::string& key = request.keys[0];
  if (count_up(key, 1) >= request.number) {
    wake(key, woken);
    return true;
  }
  park(client, {key});
  return false;
}

void TorchState::park(uint64_t client, std::vector<std::string> missing) {
  drop(client);  // A client has one wait; a second one replaces it.
  size_t bytes = 0;
  for (const auto& key : missing) {
    waiting_[key].push_back(client);
    bytes += key.size() + kTorchEntryBytes;
  }
  const size_t count = missing.size();
  waits_[client] = {std::move(missing), count, bytes};
}

size_t TorchState::waiting_bytes(uint64_t client) const {
  const auto wait = waits_.find(client);
  return wait == waits_.end() ? 0 : wait->second.bytes;
}

void TorchState::wake(const std::string& key, Replies* woken) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  const auto clients = std::move(found->second);
  waiting_.erase(found);
  for (const uint64_t client : clients) {
    const auto wait = waits_.find(client);
    if (--wait->second.missing > 0) continue;
    waits_.erase(wait);
    woken->push_back({client, bytes_of(kStopWaiting)});
  }
}

/// An element is for one client: the first whose wait it ends.
void TorchState::wake_one(const std::string& key, Replies* woken) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  auto& clients = found->second;
  while (!clients.empty()) {
    const uint64_t client = clients.front();
    clients.erase(clients.begin());
    const auto wait = waits_.find(client);
    if (--wait->second.missing > 0) continue;
    waits_.erase(wait);
    woken->push_back({client, bytes_of(kStopWaiting)});
    break;
  }
  if (clients.empty()) waiting_.erase(found);
}

void TorchState::drop(uint64_t client) {
  const auto wait = waits_.find(client);
  if (wait == waits_.end()) return;
  for (const auto& key : wait->second.keys) {
    const auto found = waiting_.find(key);
    if (found == waiting_.end()) continue;
    auto& clients = found->second;
    clients.erase(std::remove(clients.begin(), clients.end(), client), clients.end());
    if (clients.empty()) waiting_.erase(found);
  }
  waits_.erase(wait);
}

}  // namespace lockstep::inline internal
