#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "lockstep/error.h"
#include "lockstep/store/tcp/tcp_store.h"
#include "tests/store/helpers.h"

namespace lockstep::testing {

/// For a forked child: `body`, and then its end, which no exception escapes. 0: `body` returned.
[[noreturn]] inline void run_in_child(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    ::_exit(99);
  }
  ::_exit(0);
}

/// A process that serves a store, for tests that stop or kill it. The secret is "secret".
class ServerProcess {
 public:
  /// `before` runs in that process before the server starts.
  explicit ServerProcess(const std::function<void()>& before = [] {}) {
    int report[2];
    if (::pipe(report) != 0) throw io_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) run_in_child([&] { serve(before, report[1]); });
    ::close(report[1]);
    const bool came = ::read(report[0], &port_, sizeof port_) == sizeof port_;
    ::close(report[0]);
    if (!came) throw Error(ErrorCode::kInternal, "the server's process did not start");
  }
  ~ServerProcess() { end(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }
  /// Returns once all its threads stand still, which is later than the signal.
  void stop() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }
  int port() const { return port_; }
  /// `host`: a numeric address leads to the shortcut beside TCP, a name to TCP itself.
  std::shared_ptr<Store> connect(const char* host = "127.0.0.1") const {
    return connect_tcp_store({host, port_}, "secret", soon());
  }

 private:
  [[noreturn]] static void serve(const std::function<void()>& before, int report) {
    before();
    TcpStoreServerOptions options;
    options.secret = "secret";
    const TcpStoreServer server(options);
    const int port = server.port();
    if (::write(report, &port, sizeof port) != sizeof port) ::_exit(1);
    while (true) ::pause();
  }

  pid_t pid_ = 0;
  int port_ = 0;
};

/// Makes as many calls as it takes until a client of the server's host has its call slot.
inline std::shared_ptr<Store> with_call_slot(std::shared_ptr<Store> store) {
  for (int i = 0; i < 40; ++i) store->try_get("calls until the slot", soon());
  return store;
}

}  // namespace lockstep::testing
