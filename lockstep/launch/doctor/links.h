#pragma once
// The ports that a host's doctor opens for the other hosts' doctors, attempts to reach theirs, and
// the links' speed.

#include <poll.h>

#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/unique_fd.h"
#include "lockstep/deadline.h"
#include "lockstep/launch/doctor/facts.h"

namespace lockstep::doctor {

constexpr size_t kCookieBytes = 32;  ///< Hex digits that every visitor sends first.
constexpr char kEcho = 'E';          ///< Then: data is sent back,
constexpr char kSink = 'S';          ///< or thrown away.

/// Listens and answers in a thread of its own until destroyed. Closes a visitor with another
/// cookie; answers others with the host's index (4 bytes, little-endian).
class LinkServer {
 public:
  LinkServer(std::string cookie, int index);
  ~LinkServer();
  LinkServer(const LinkServer&) = delete;
  LinkServer& operator=(const LinkServer&) = delete;

  /// Listens on all addresses, or on `host` if that is an address of this host. Call before
  /// start().
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
  /// False: close the connection.
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
  int asked = 0;     ///< The port as it appears in the finding.
  int port = 0;
};

/// Why each port cannot be reached; "" if the right host's doctor answered. All are tried at once,
/// each within `limit`. `names` are all hosts' names, to report a name that leads to another host.
std::vector<std::string> try_links(const std::vector<LinkTarget>& targets,
                                   const std::string& cookie, const std::vector<std::string>& names,
                                   Deadline::Clock::duration limit);

struct LinkSpeed {
  double latency_us = 0;
  double gbit_s = 0;
};

/// Median of up to 200 round trips of 8 bytes; then one stream for `time`, counting acknowledged
/// bytes. Errors: kUnavailable, kTimeout, kPeerLost.
LinkSpeed measure_link(const LinkTarget& target, const std::string& cookie,
                       Deadline::Clock::duration time);

}  // namespace lockstep::doctor
