// Rank 0 sends a credential to each client: only this user's processes can decode it, so clients
// need not be identified. Each host decodes a credential once, so each client gets a new one. It
// names the job: a server with another job's credential is skipped.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <thread>

#include "lockstep/base/in_child.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/bootstrap/exchange.h"
#include "lockstep/world/bootstrap/munge_library.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kMaxCredential = 8 << 10;  // of kMaxExchangeBytes and a name some 2 KiB
constexpr std::chrono::milliseconds kPause{100};

UniqueFd listen_at_one_of(const std::vector<int>& ports) {
  for (const int port : ports) {
    try {
      return tcp_listen(kAllAddresses, port);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable || port == ports.back()) throw;
    }
  }
  throw Error(ErrorCode::kInternal, "no port for an exchange by munge");
}

/// Sends each client a credential until it is destroyed.
class CredentialServer {
 public:
  CredentialServer(UniqueFd listener, std::string text)
      : listener_(std::move(listener)),
        text_(std::move(text)),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        owner_(::getpid()) {
    if (!stop_) throw io_error("eventfd");
    thread_ = start_thread_with_signals_blocked([this] { serve(); });
  }

  ~CredentialServer() {
    if (::getpid() != owner_) {  // a forked child has no such thread: it touches nothing of it
      leave_to_parent(thread_);
      return;
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  CredentialServer(const CredentialServer&) = delete;
  CredentialServer& operator=(const CredentialServer&) = delete;

 private:
  void serve() {
    while (true) {
      std::array<pollfd, 2> items = {pollfd{listener_.get(), POLLIN, 0},
                                     pollfd{stop_.get(), POLLIN, 0}};
      ::poll(items.data(), items.size(), -1);
      if (items[1].revents != 0) return;
      if (items[0].revents != 0) serve_one();
    }
  }

  void serve_one() {
    try {
      const UniqueFd client = tcp_accept(listener_.get(), Deadline::after(kPause));
      const std::string line = Munge::get().encode(text_) + "\n";
      // It fits into the buffers of a new connection: a slow reader delays nobody.
      send_all(client.get(), line.data(), line.size(), Deadline::after(kPause), "a rank");
    } catch (const Error&) {
      std::this_thread::sleep_for(kPause);  // the client comes again; no munged, or no descriptor
    }
  }

  UniqueFd listener_;
  std::string text_;
  UniqueFd stop_;
  pid_t owner_;
  std::thread thread_;
};

class MungeExchange final : public RankExchange {
 public:
  MungeExchange(std::string host, std::vector<int> ports, std::string job)
      : host_(std::move(host)), ports_(std::move(ports)), job_(std::move(job)) {
    Munge::get();
  }

  void publish(const std::string& line, Deadline) override {
    server_ = std::make_unique<CredentialServer>(listen_at_one_of(ports_), job_ + "\n" + line);
  }

  std::string receive(Deadline deadline) override {
    for (auto patience = kPause;;
         patience = std::min(patience * 2, std::chrono::milliseconds(3000))) {
      for (const int port : ports_) {
        if (auto line = ask({host_, port}, deadline.at_most(patience))) return std::move(*line);
      }
      if (deadline.passed()) break;
      std::this_thread::sleep_for(std::min(kPause, deadline.left()));
    }
    throw Error(ErrorCode::kTimeout,
                fmt::format("rank 0 of job {} has sent no credential of munge at {}, ports "
                            "{}{}; is it running there, as this user?",
                            job_, host_, fmt::join(ports_, ", "), why_));
  }

 private:
  /// Nothing if nobody, or another job, is there.
  std::optional<std::string> ask(const Endpoint& place, Deadline deadline) {
    try {
      const UniqueFd server = tcp_connect_once(place, deadline);
      const std::string text = Munge::get().decode(read_line(server.get(), place, deadline));
      const size_t end = text.find('\n');
      if (text.substr(0, end) == job_ && end != std::string::npos) return text.substr(end + 1);
      why_ = fmt::format(" (another job of this user is at {})", to_string(place));
    } catch (const Error& error) {
      // A server that refuses, or is silent, may be at the next port, or here a moment later.
      if (error.code() != ErrorCode::kPeerLost && error.code() != ErrorCode::kTimeout)
        why_ = fmt::format(" ({}: {})", to_string(place), error.what());
    }
    return std::nullopt;
  }

  static std::string read_line(int server, const Endpoint& place, Deadline deadline) {
    std::string line;
    std::array<char, 1024> bytes;
    while (line.find('\n') == std::string::npos) {
      if (line.size() > kMaxCredential) throw Error(ErrorCode::kCorrupt, "this is no credential");
      const size_t got = recv_some(server, bytes.data(), bytes.size(), deadline, to_string(place));
      line.append(bytes.data(), got);
    }
    return std::string(first_line(line));
  }

  std::string host_;
  std::vector<int> ports_;
  std::string job_;
  std::string why_;  ///< What answered instead, for the message.
  std::unique_ptr<CredentialServer> server_;
};

}  // namespace

std::shared_ptr<RankExchange> open_munge_exchange(const std::string& host,
                                                  const std::vector<int>& ports,
                                                  const std::string& job) {
  return std::make_shared<MungeExchange>(host, ports, job);
}

}  // namespace lockstep::inline internal
