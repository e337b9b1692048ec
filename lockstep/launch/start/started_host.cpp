#include "lockstep/launch/start/started_host.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/base/literals.h"
#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/launch/start/host_slots.h"
#include "lockstep/launch/start/remote_agent.h"

namespace lockstep {
namespace {

std::vector<std::string> agent_words(const std::string& host, const std::string& self,
                                     const std::string& rsh) {
  if (is_this_host(host)) return {self, "run", kStartedWord};
  return remote_words(rsh, host, shell_quoted(self) + " run " + kStartedWord);
}

}  // namespace

StartedHost::StartedHost(const std::string& name, const std::string& self, const std::string& rsh)
    : name_(name), agent_(std::make_unique<Subprocess>(agent_words(name, self, rsh))) {}

void StartedHost::send(const std::string& line) {
  if (status_) return;
  try {
    send_all(agent_->in(), line.data(), line.size(), Deadline::after(10s), name_);
  } catch (const Error&) {
    agent_->close_in();
  }
}

std::vector<int> StartedHost::open_outputs() const {
  std::vector<int> fds;
  if (open_[0]) fds.push_back(agent_->out());
  if (open_[1]) fds.push_back(agent_->err());
  return fds;
}

void StartedHost::read(int stream, const TakeLine& take) {
  bool& open = open_[stream - 1];
  LineSplitter& splitter = lines_[stream - 1];
  if (!open) return;
  static std::array<char, 64 << 10> buffer;
  const ssize_t got =
      ::read(stream == 1 ? agent_->out() : agent_->err(), buffer.data(), buffer.size());
  open = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  auto lines = splitter.feed({buffer.data(), got > 0 ? static_cast<size_t>(got) : 0});
  if (!open) {
    if (std::string last = splitter.finish(); !last.empty()) lines.push_back(std::move(last));
  }
  for (const std::string& line : lines) take(stream, line);
}

bool StartedHost::poll_end() {
  if (!is_ending()) return false;
  status_ = agent_->poll_end();
  return status_.has_value();
}

}  // namespace lockstep
