#pragma once
// The ports that the doctor of one host opens for those of the others; trying theirs, and how fast
// the way there is.

#include <poll.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/doctor/facts.h"

namespace lockstep::doctor {

constexpr size_t kCookieBytes = 32;  ///< Hex digits that every visitor sends first.
constexpr char kEcho = 'E';          ///< Then: what comes is sent back,
constexpr char kSink = 'S';          ///< or thrown away.

/// Listens and answers in a thread of its own until it is destroyed. A visitor that sends another
/// cookie is closed. It is answered with the host's index, 4 bytes, lowest first.
class LinkServer {
 public:
  LinkServer(std::string cookie, int index);
  ~LinkServer();
  LinkServer(const LinkServer&) = delete;
  LinkServer& operator=(const LinkServer&) = delete;

  /// Listens on all addresses, or on `host` where that is an address of this host. Before start().
  ListeningPort open(const std::string& host, int port);
  void start();

 private:
  struct Visitor {
    UniqueFd fd;
    std::string greeting;
    char wish = 0;
  };
  void serve();
  void accept_all(int listener);
  /// False: close it.
  bool attend(Visitor& visitor) const;
  bool take_greeting(Visitor& visitor) const;

  const std::string cookie_;
  const int index_;
  UniqueFd stop_read_, stop_write_;
  std::vector<UniqueFd> listeners_;
  std::vector<Visitor> visitors_;
  std::thread thread_;
};

struct LinkTarget {
  int index = 0;     ///< Of the host that should answer.
  std::string name;  ///< As this host resolves it.
  int asked = 0;     ///< The port that stands in the finding.
  int port = 0;
};

/// Why a port cannot be reached, each try within `limit`, all at once; "" when the right host's
/// doctor answered. `names` are all hosts', for a name that leads to another.
std::vector<std::string> try_links(const std::vector<LinkTarget>& targets,
                                   const std::string& cookie, const std::vector<std::string>& names,
                                   Deadline::Clock::duration limit);

struct LinkSpeed {
  double latency_us = 0;
  double gbit_s = 0;
};

/// Median of up to 200 round trips of 8 bytes, then one stream for `time`: what the other end has
/// acknowledged. Errors: kUnavailable, kTimeout, kPeerLost.
LinkSpeed measure_link(const LinkTarget& target, const std::string& cookie,
                       Deadline::Clock::duration time);

}  // namespace lockstep::doctor
