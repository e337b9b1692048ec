#pragma once
// What the doctor of one host serves to those of the others while they look at its ports.

#include <poll.h>

#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/unique_fd.h"
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

}  // namespace lockstep::doctor
