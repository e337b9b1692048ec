#pragma once
// What a server allows those who have not proved the secret, and what it says of them. Pure: the
// caller says what time it is.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep {

/// Connections that have not proved themselves yet. Their number is bounded. Once there are many no
/// host keeps more than its share for long: a host of many ranks may have more for the moment that
/// a handshake takes.
class Strangers {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr size_t kMost = 1024;
  static constexpr size_t kMostOfAHost = 64;
  /// Up to here there is room for all, also for a busy host's ranks that take longer.
  static constexpr size_t kMany = kMost / 2;
  /// A handshake takes a millisecond, or as long as a busy machine takes.
  static constexpr std::chrono::milliseconds kCrowdLimit{1000};

  explicit Strangers(std::chrono::milliseconds limit) : limit_(limit) {}

  /// `id` is greater than all before. Of an empty host there may be as many as there are.
  void add(uint64_t id, const std::string& host, Time now);
  /// It has proved itself, or is gone.
  void forget(uint64_t id);
  bool none() const { return all_.empty(); }
  /// There must not be more.
  bool full() const { return all_.size() >= kMost; }
  bool holds(uint64_t id) const { return all_.count(id) > 0; }

  struct Overdue {
    uint64_t id = 0;
    bool crowd = false;  ///< Its host has too many; else it took too long.
  };
  /// Those to be dropped now; forgets them.
  std::vector<Overdue> overdue(Time now);
  /// How long until overdue() may have something to say; nothing: until more come.
  std::optional<std::chrono::milliseconds> due_in(Time now) const;

 private:
  struct Stranger {
    std::string host;
    Time came;
  };
  bool crowded(const Stranger& stranger) const;

  const std::chrono::milliseconds limit_;
  std::map<uint64_t, Stranger> all_;  ///< In the order in which they came.
  std::unordered_map<std::string, size_t> of_host_;
  size_t crowds_ = 0;  ///< Hosts with more than their share.
};

/// Which refusals are worth a line: the first of each host in a while. However many hosts there
/// are, lines are bounded.
class Refusals {
 public:
  using Time = Strangers::Time;
  static constexpr std::chrono::minutes kPeriod{10};
  static constexpr size_t kMostHosts = 256;

  /// What follows the line: "", or how many there were since the last one; nothing: no line.
  std::optional<std::string> note(const std::string& host, Time now);
  /// It was let in: what comes from there is news again.
  void forget(const std::string& host) { hosts_.erase(host); }

 private:
  struct Host {
    Time said;
    long untold = 0;
  };
  std::unordered_map<std::string, Host> hosts_;
};

}  // namespace lockstep
