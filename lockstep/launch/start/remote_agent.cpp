#include "lockstep/launch/start/remote_agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <thread>

#include "lockstep/base/env.h"
#include "lockstep/base/file.h"
#include "lockstep/base/port_range.h"
#include "lockstep/base/signal_blocking_thread.h"
#include "lockstep/base/unique_fd.h"
#include "lockstep/error.h"
#include "lockstep/launch/job/start_messages.h"

namespace lockstep::inline internal {
namespace {

/// The connection to the starter: standard input, moved so that workers do not inherit it.
class StarterLink {
 public:
  StarterLink() : in_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)), stop_(::eventfd(0, EFD_CLOEXEC)) {
    const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!in_ || !stop_ || !nothing) throw io_error("standard input");
    ::dup2(nothing.get(), STDIN_FILENO);
  }

  ~StarterLink() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = ::write(stop_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
  }
  StarterLink(const StarterLink&) = delete;
  StarterLink& operator=(const StarterLink&) = delete;

  /// Nothing: the starter is gone.
  std::optional<std::string> line() {
    std::array<char, 4096> buffer{};
    while (true) {
      const size_t end = bytes_.find('\n');
      if (end != std::string::npos) {
        std::string text = bytes_.substr(0, end);
        bytes_.erase(0, end + 1);
        return text;
      }
      if (!readable() || bytes_.size() > kMaxStarterLine) return std::nullopt;
      const ssize_t got = ::read(in_.get(), buffer.data(), buffer.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) return std::nullopt;
      bytes_.append(buffer.data(), static_cast<size_t>(got));
    }
  }

  /// From now on each line is a signal for this process.
  void obey() {
    thread_ = start_thread_with_signals_blocked([this] {
      while (const auto text = line()) {
        const int signal = std::atoi(text->c_str());
        if (signal > 0) ::kill(::getpid(), signal);
      }
      if (!stopped()) ::kill(::getpid(), SIGTERM);
    });
  }

 private:
  bool stopped() const {
    pollfd item{stop_.get(), POLLIN, 0};
    return ::poll(&item, 1, 0) > 0;
  }
  /// False: this process ends.
  bool readable() const {
    std::array<pollfd, 2> items = {pollfd{in_.get(), POLLIN, 0}, pollfd{stop_.get(), POLLIN, 0}};
    while (::poll(items.data(), items.size(), -1) < 0 && errno == EINTR) {
    }
    return items[1].revents == 0;
  }

  UniqueFd in_;
  UniqueFd stop_;
  std::string bytes_;
  std::thread thread_;
};

std::string need_line(StarterLink* link) {
  auto line = link->line();
  if (!line) {
    ::raise(SIGTERM);  // no process would read a message
    throw Error(ErrorCode::kPeerLost, "the starter of this agent is gone");
  }
  return std::move(*line);
}

void send_to_starter(const std::string& line) {
  const std::string text = std::string(kStarterMark) + line;
  write_all(STDOUT_FILENO, text.data(), text.size(), "standard output");
}

void enter(const StartSetup& setup) {
  if (::chdir(setup.folder.c_str()) != 0) throw io_error("go to folder " + setup.folder);
  for (const auto& [name, value] : setup.variables) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv("LOCKSTEP_SECRET", setup.secret.c_str(), 1);
}

}  // namespace

int run_from_starter(const std::function<int(const std::vector<std::string>& words)>& run) {
  StarterLink link;
  const StartSetup setup = setup_from_line(need_line(&link));
  enter(setup);
  StartHello hello;
  hello.address = address_of_ssh(env_or("SSH_CONNECTION", ""));
  std::optional<ReservedPort> port;  // until the store listens there
  if (setup.finds_port) hello.port = port.emplace(0).port();
  send_to_starter("hello " + to_line(hello));
  const StartGo go = go_from_line(need_line(&link));
  std::vector<std::string> words;
  if (!go.address.empty()) {
    words = {"--master_addr=" + go.address, fmt::format("--master_port={}", go.port)};
  }
  words.insert(words.end(), setup.words.begin(), setup.words.end());
  link.obey();
  return run(words);
}

}  // namespace lockstep::inline internal
