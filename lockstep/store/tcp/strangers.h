#pragma once
// A server's limits for clients that have not proved the secret, and its warnings about them. Pure:
// time is an argument.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::inline internal {

/// Connections that have not proved themselves yet. Their number is bounded. Once there are many,
/// no host keeps more than its share for long; a host of many ranks may exceed it during its
/// handshakes.
class Strangers {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr size_t kMost = 1024;
  static constexpr size_t kMostOfAHost = 64;
  /// Up to here there is room for all, including slow ranks of a busy host.
  static constexpr size_t kMany = kMost / 2;
  /// A handshake takes a millisecond, or longer on a busy host.
  static constexpr std::chrono::milliseconds kCrowdLimit{1000};

  explicit Strangers(std::chrono::milliseconds limit) : limit_(limit) {}

  /// `id` is greater than all before. An empty host has no limit of its own.
  void add(uint64_t id, const std::string& host, Time now);
  /// All have the whole time again, as if they came now.
  void restart(Time now);
  /// It has proved itself, or is gone.
  void forget(uint64_t id);
  bool none() const { return all_.empty(); }
  /// No more may be added.
  bool full() const { return all_.size() >= kMost; }
  bool holds(uint64_t id) const { return all_.count(id) > 0; }

  struct Overdue {
    uint64_t id = 0;
    bool crowd = false;  ///< Its host has too many; else it took too long.
  };
  /// Clients to drop now; removes them.
  std::vector<Overdue> overdue(Time now);
  /// Time until overdue() may return a client; nothing: until more come.
  std::optional<std::chrono::milliseconds> due_in(Time now) const;

 private:
  struct Stranger {
    std::string host;
    Time came;
  };
  bool crowded(const Stranger& stranger) const;

  const std::chrono::milliseconds limit_;
  std::map<uint64_t, Stranger> all_;  ///< In the order of arrival.
  std::unordered_map<std::string, size_t> of_host_;
  size_t crowds_ = 0;  ///< Hosts with more than their share.
};

/// Decides which refusals are logged: the first of each host within a period. The number of lines
/// is bounded for any number of hosts.
class Refusals {
 public:
  using Time = Strangers::Time;
  static constexpr std::chrono::minutes kPeriod{10};
  static constexpr size_t kMostHosts = 256;

  /// Text after the line: "", or the number of refusals since the last one; nothing: no line.
  std::optional<std::string> note(const std::string& host, Time now);
  /// A client of the host was let in: the next refusal is logged again.
  void forget(const std::string& host) { hosts_.erase(host); }

 private:
  struct Host {
    Time reported;
    long unreported = 0;
  };
  std::unordered_map<std::string, Host> hosts_;
};

}  // namespace lockstep::inline internal
