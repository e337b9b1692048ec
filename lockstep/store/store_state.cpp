#include "lockstep/store/store_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::inline internal {
namespace {

/// Erased keys that watchers can still learn of. A watcher further behind must start again.
constexpr size_t kMaxErasures = 1 << 16;

StoreReply yes_or_no(bool yes) {
  StoreReply reply;
  reply.yes = yes;
  return reply;
}

}  // namespace

std::vector<StoreAnswer> StoreState::submit(StoreTicket from, StoreRequest request) {
  if (waiters_.contains(from)) return {{from, refused("this request number waits already")}};
  Answers woken;
  auto reply = execute(from.client, request, woken);
  if (!reply) {
    park(from, std::move(request));
  } else {
    if (payload_bytes(*reply) > kMaxReplyBytes) reply = refused_as_too_large(request.keys[0]);
    woken.insert(woken.begin(), {from, std::move(*reply)});
  }
  return woken;
}

std::optional<StoreReply> StoreState::execute(uint64_t client, const StoreRequest& request,
                                              Answers& woken) {
  switch (request.op) {
    case StoreOp::kSet:
      put(request.keys[0], request.value, woken);
      return StoreReply{};
    case StoreOp::kSetMany:
      for (size_t i = 0; i < request.keys.size(); ++i)
        put(request.keys[i], request.values.at(i), woken);
      return StoreReply{};
    case StoreOp::kGet:
    case StoreOp::kWait:
      if (next_missing(request, 0)) return std::nullopt;
      return found(request);
    case StoreOp::kTryGet:
      return found(request);
    case StoreOp::kArrive:
      return arrive(request, woken);
    case StoreOp::kAdd:
      return add(request, woken);
    case StoreOp::kCompareSet:
      return compare_set(request, woken);
    case StoreOp::kSetWithLease:
      return set_with_lease(client, request, woken);
    case StoreOp::kCheck:
      return yes_or_no(!next_missing(request, 0));
    case StoreOp::kErase:
      return erase(request.keys[0], woken);
    case StoreOp::kList:
      return list(request.keys[0]);
    case StoreOp::kWatch:
      return watch(request);
    case StoreOp::kCancel:
    case StoreOp::kOpenCallSlot:
      break;
  }
  return refused("no such operation");
}

StoreReply StoreState::add(const StoreRequest& request, Answers& woken) {
  const std::string& key = request.keys[0];
  StoreReply reply = add_to_counter(key, find(key), request.number);
  if (reply.status == StoreReply::Status::kDone) put(key, std::to_string(reply.number), woken);
  return reply;
}

/// Sets the first key now, and then waits for all of them.
std::optional<StoreReply> StoreState::arrive(const StoreRequest& request, Answers& woken) {
  if (find(request.keys[0]) != nullptr) return yes_or_no(false);
  put(request.keys[0], request.value, woken);
  if (next_missing(request, 0)) return std::nullopt;
  return found(request);
}

StoreReply StoreState::compare_set(const StoreRequest& request, Answers& woken) {
  const std::string& key = request.keys[0];
  const std::string* held = find(key);
  const bool equal = held != nullptr ? request.expected == *held : !request.expected;
  if (equal) put(key, request.value, woken);
  StoreReply reply = found(request);
  reply.yes = equal;
  return reply;
}

StoreReply StoreState::set_with_lease(uint64_t client, const StoreRequest& request,
                                      Answers& woken) {
  const std::string& key = request.keys[0];
  if (const std::string* value = find(key)) {
    Entry& entry = entries_.find(key)->second;
    if (entry.holder != client) return yes_or_no(false);
    if (*value != request.value) put(key, request.value, woken).holder = client;
  } else {
    put(key, request.value, woken).holder = client;
  }
  leased_[client][key] = std::chrono::milliseconds(request.number);
  return yes_or_no(true);
}

const StoreState::LeasedKeys* StoreState::leased_by(uint64_t client) const {
  const auto it = leased_.find(client);
  return it != leased_.end() ? &it->second : nullptr;
}

std::optional<std::chrono::milliseconds> StoreState::shortest_ttl(uint64_t client) const {
  const LeasedKeys* leased = leased_by(client);
  if (leased == nullptr) return std::nullopt;
  const auto shorter = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::min_element(leased->begin(), leased->end(), shorter)->second;
}

std::vector<uint64_t> StoreState::holders() const {
  std::vector<uint64_t> clients;
  clients.reserve(leased_.size());
  for (const auto& [client, keys] : leased_) clients.push_back(client);
  return clients;
}

void StoreState::release(const std::string& key, Entry& entry) {
  if (!entry.holder) return;
  const auto it = leased_.find(*entry.holder);
  it->second.erase(key);
  if (it->second.empty()) leased_.erase(it);
  entry.holder.reset();
}

StoreReply StoreState::erase(const std::string& key, Answers& woken) {
  if (find(key) == nullptr) return yes_or_no(false);
  Entry& entry = entries_.find(key)->second;
  release(key, entry);
  entry.value.reset();
  record_change(key, entry, woken);
  erasures_.emplace_back(entry.version, key);
  forget_old_erasures();
  return yes_or_no(true);
}

StoreReply StoreState::list(std::string_view prefix) const {
  StoreReply reply;
  for (auto it = entries_.lower_bound(prefix); it != entries_.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    if (it->second.value) reply.items.push_back({it->first, std::nullopt});
  }
  return reply;
}

std::optional<StoreReply> StoreState::watch(const StoreRequest& request) const {
  const auto since = static_cast<uint64_t>(request.number);
  if (since != 0 && since < forgotten_version_) {
    return refused(fmt::format("version {} is too old, changes since {} are known; begin with 0",
                               since, forgotten_version_));
  }
  StoreReply reply;
  reply.number = static_cast<int64_t>(version_);
  int64_t bytes = 0;
  const std::string& prefix = request.keys[0];
  for (auto it = entries_.lower_bound(prefix); it != entries_.end(); ++it) {
    const auto& [key, entry] = *it;
    if (!key.starts_with(prefix)) break;
    if (entry.version <= since || (since == 0 && !entry.value)) continue;
    bytes += static_cast<int64_t>(entry.value ? entry.value->size() : 0);
    if (bytes > kMaxReplyBytes) return refused_as_too_large(request.keys[0]);
    reply.items.push_back({key, entry.value});
  }
  if (reply.items.empty()) return std::nullopt;
  return reply;
}

StoreState::Entry& StoreState::put(const std::string& key, std::string value, Answers& woken) {
  Entry& entry = entries_[key];
  release(key, entry);
  const bool created = !entry.value;
  entry.value = std::move(value);
  record_change(key, entry, woken);
  if (created) wake_waiters(key, woken);
  return entry;
}

void StoreState::record_change(const std::string& key, Entry& entry, Answers& woken) {
  entry.version = ++version_;
  wake_watchers(key, entry, woken);
}

void StoreState::forget_old_erasures() {
  while (erasures_.size() > kMaxErasures) {
    const auto& [version, key] = erasures_.front();
    const auto it = entries_.find(key);
    if (it != entries_.end() && !it->second.value && it->second.version == version)
      entries_.erase(it);
    forgotten_version_ = version;
    erasures_.pop_front();
  }
}

// A wait for many keys is filed under one missing key, and moves on when that key comes. A new key
// thus costs only the waits that need it next.
void StoreState::wake_waiters(const std::string& key, Answers& woken) {
  const auto filed = waiting_for_key_.extract(key);
  if (filed.empty()) return;
  for (const StoreTicket ticket : filed.mapped()) {
    const auto it = waiters_.find(ticket);
    Waiter& waiter = it->second;
    if (const auto missing = next_missing(waiter.request, waiter.next_key)) {
      waiter.next_key = *missing;
      waiting_for_key_[waiter.request.keys[*missing]].insert(ticket);
    } else {
      woken.push_back({ticket, found(waiter.request)});
      waiters_.erase(it);
    }
  }
}

// A watcher has seen every earlier change, so this is the only one to report. Only prefixes of
// `key` and a few others are visited: thousands may watch other keys.
void StoreState::wake_watchers(const std::string& key, const Entry& entry, Answers& woken) {
  auto it = watching_prefix_.upper_bound(key);
  while (it != watching_prefix_.begin()) {
    --it;
    const std::string& prefix = it->first;
    if (!key.starts_with(prefix)) {
      // It differs from `key` downwards; a longer prefix of `key` would come after it.
      const auto [departs, same] =
          std::mismatch(key.begin(), key.end(), prefix.begin(), prefix.end());
      it = watching_prefix_.upper_bound(std::string(key.begin(), departs));
      continue;
    }
    for (const StoreTicket ticket : it->second) {
      StoreReply reply;
      reply.number = static_cast<int64_t>(version_);
      reply.items.push_back({key, entry.value});
      woken.push_back({ticket, std::move(reply)});
      waiters_.erase(ticket);
    }
    it = watching_prefix_.erase(it);
  }
}

const std::string* StoreState::find(std::string_view key) const {
  const auto it = entries_.find(key);
  return it != entries_.end() && it->second.value ? &*it->second.value : nullptr;
}

/// The first missing key from `from` on, cyclically.
std::optional<size_t> StoreState::next_missing(const StoreRequest& request, size_t from) const {
  const size_t count = request.keys.size();
  for (size_t step = 0; step < count; ++step) {
    const size_t index = (from + step) % count;
    if (find(request.keys[index]) == nullptr) return index;
  }
  return std::nullopt;
}

/// The reply with the present value of the request's key; without it for kWait and kArrive.
StoreReply StoreState::found(const StoreRequest& request) const {
  StoreReply reply;
  if (request.op == StoreOp::kArrive) return yes_or_no(true);
  if (request.op == StoreOp::kWait) return reply;
  const std::string* value = find(request.keys[0]);
  reply.items.push_back({{}, value != nullptr ? std::optional(*value) : std::nullopt});
  return reply;
}

void StoreState::park(StoreTicket ticket, StoreRequest request) {
  Waiter waiter{std::move(request), 0};
  if (waiter.request.op == StoreOp::kWatch) {
    watching_prefix_[waiter.request.keys[0]].insert(ticket);
  } else {
    waiter.next_key = next_missing(waiter.request, 0).value();
    waiting_for_key_[waiter.request.keys[waiter.next_key]].insert(ticket);
  }
  waiters_.emplace(ticket, std::move(waiter));
}

void StoreState::unfile(StoreTicket ticket, const Waiter& waiter) {
  const auto remove = [&](auto& index, const std::string& name) {
    const auto it = index.find(name);
    it->second.erase(ticket);
    if (it->second.empty()) index.erase(it);
  };
  if (waiter.request.op == StoreOp::kWatch) {
    remove(watching_prefix_, waiter.request.keys[0]);
  } else {
    remove(waiting_for_key_, waiter.request.keys[waiter.next_key]);
  }
}

std::optional<StoreReply> StoreState::cancel(StoreTicket ticket) {
  const auto it = waiters_.find(ticket);
  if (it == waiters_.end()) return std::nullopt;
  const Waiter waiter = std::move(it->second);
  unfile(ticket, waiter);
  waiters_.erase(it);
  StoreReply reply;
  if (waiter.request.op == StoreOp::kWatch) {
    reply.number = static_cast<int64_t>(version_);
    return reply;
  }
  reply.status = StoreReply::Status::kTimedOut;
  for (const auto& key : waiter.request.keys) {
    if (find(key) == nullptr) reply.items.push_back({key, std::nullopt});
  }
  return reply;
}

std::vector<StoreAnswer> StoreState::drop_client(uint64_t client) {
  auto it = waiters_.lower_bound({client, 0});
  while (it != waiters_.end() && it->first.client == client) {
    unfile(it->first, it->second);
    it = waiters_.erase(it);
  }
  Answers woken;
  if (const LeasedKeys* keys = leased_by(client)) {
    for (const auto& [key, ttl] : LeasedKeys(*keys)) erase(key, woken);
  }
  return woken;
}

}  // namespace lockstep::inline internal
