#include "lockstep/store/heartbeats.h"

#include <algorithm>

namespace lockstep::inline internal {
namespace {

/// How much longer a sleep may take than planned without a correction.
constexpr auto kLate = std::chrono::milliseconds(100);

}  // namespace

ListeningClock::Time ListeningClock::advance(Time now,
                                             std::optional<std::chrono::milliseconds> planned) {
  auto passed = now - real_;
  if (planned) passed = std::min<Time::duration>(passed, *planned + kLate);
  real_ = now;
  listened_ += passed;
  return listened_;
}

void Heartbeats::expect(uint64_t client, Ttl ttl, Time now) {
  const auto [it, is_new] = clients_.try_emplace(client);
  Client& entry = it->second;
  entry.heard = now;
  entry.ttl = is_new ? ttl : std::min(entry.ttl, ttl);
  if (is_new || entry.heard + entry.ttl < entry.queued) queue(client, entry);
}

void Heartbeats::heard(uint64_t client, Time now) {
  if (clients_.empty()) return;
  const auto it = clients_.find(client);
  if (it != clients_.end()) it->second.heard = now;
}

void Heartbeats::queue(uint64_t id, Client& client) {
  client.queued = client.heard + client.ttl;
  queue_.emplace(client.queued, id);
}

std::optional<Heartbeats::Time> Heartbeats::next() const {
  return queue_.empty() ? std::nullopt : std::optional(queue_.top().first);
}

// heard() does not touch the queue. An entry is checked when its time has come, and then moved to
// the time that is due by now.
std::vector<uint64_t> Heartbeats::silent(Time now, const TtlOf& ttl_of) {
  std::vector<uint64_t> result;
  while (!queue_.empty() && queue_.top().first <= now) {
    const auto [due, id] = queue_.top();
    queue_.pop();
    const auto it = clients_.find(id);
    if (it == clients_.end() || it->second.queued != due) continue;
    Client& client = it->second;
    const auto ttl = client.heard + client.ttl <= now ? ttl_of(id) : client.ttl;
    if (ttl && client.heard + *ttl > now) {
      client.ttl = *ttl;
      queue(id, client);
      continue;
    }
    if (ttl) result.push_back(id);
    clients_.erase(it);
  }
  return result;
}

}  // namespace lockstep::inline internal
