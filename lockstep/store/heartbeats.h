#pragma once
// Clients that have been silent for too long. Pure: time is an argument.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep::inline internal {

/// The time in which a loop could receive: the steady clock's, less the time in which its process
/// was stopped, suspended or starved. Silence is measured by it: a server that could not receive
/// drops no client.
class ListeningClock {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit ListeningClock(Time now) : real_(now), listened_(now) {}

  /// The time at `now`, when the loop meant to sleep for at most `planned` since the last call
  /// (nothing: for ever).
  Time advance(Time now, std::optional<std::chrono::milliseconds> planned);

 private:
  Time real_;
  Time listened_;
};

/// Clients that must send something at intervals. Each call costs O(log n) at most.
class Heartbeats {
 public:
  using Time = ListeningClock::Time;
  using Ttl = std::chrono::milliseconds;

  /// `client`, heard of now, must not be silent for `ttl`, or for a shorter time set earlier.
  void expect(uint64_t client, Ttl ttl, Time now);
  void heard(uint64_t client, Time now);
  void forget(uint64_t client) { clients_.erase(client); }

  bool empty() const { return clients_.empty(); }
  /// When silent() may next return a client, at the latest.
  std::optional<Time> next() const;
  /// Clients that were silent for ttl_of(client), and removes them. That may be longer by now than
  /// expected (nothing: no heartbeat is due any more).
  using TtlOf = std::function<std::optional<Ttl>(uint64_t client)>;
  std::vector<uint64_t> silent(Time now, const TtlOf& ttl_of);

 private:
  struct Client {
    Time heard;
    Ttl ttl{};
    Time queued;  ///< The one entry of queue_ that counts; others of this client are skipped.
  };
  using Due = std::pair<Time, uint64_t>;

  void queue(uint64_t id, Client& client);

  std::unordered_map<uint64_t, Client> clients_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> queue_;
};

}  // namespace lockstep::inline internal
