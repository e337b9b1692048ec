#include "lockstep/launch/start/starter.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/auth.h"
#include "lockstep/base/counted.h"
#include "lockstep/base/descriptors.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/proc.h"
#include "lockstep/base/socket.h"
#include "lockstep/deadline.h"
#include "lockstep/error.h"
#include "lockstep/launch/job/failure.h"
#include "lockstep/launch/job/start_messages.h"
#include "lockstep/launch/process/console.h"
#include "lockstep/launch/process/line_splitter.h"
#include "lockstep/launch/process/signals.h"
#include "lockstep/launch/process/subprocess.h"
#include "lockstep/launch/start/host_slots.h"
#include "lockstep/launch/start/remote_agent.h"
#include "lockstep/world/secret.h"

namespace lockstep::inline internal {
namespace {

std::vector<std::string> agent_words(const std::string& host, const std::string& self,
                                     const std::string& rsh) {
  if (is_this_host(host)) return {self, "run", kStartedWord};
  return remote_words(rsh, host, shell_quoted(self) + " run " + kStartedWord);
}

/// The agent that the starter runs on one host: messages to it, and its lines.
class StartedHost {
 public:
  /// Starts an agent on the host `name`, by `rsh` if that is another host. `self`: path of this
  /// program, there too. Errors: kNotFound (no such program here), kIo.
  StartedHost(const std::string& name, const std::string& self, const std::string& rsh);

  const std::string& name() const { return name_; }
  bool hello_received = false;

  /// Sends a line; if that fails, the agent's end shows the reason.
  void send(const std::string& line);
  void close_in() { agent_->close_in(); }
  void kill_group() const { agent_->kill_group(); }

  /// Descriptors that may still have output.
  std::vector<int> open_outputs() const;
  using TakeLine = std::function<void(int stream, const std::string& line)>;
  /// Passes on the available output of stream 1 or 2, at most 64 KiB.
  void read(int stream, const TakeLine& take);

  /// Both streams have ended, but the process may still run.
  bool is_ending() const { return !open_[0] && !open_[1] && !status_; }
  /// True once: when it has ended after its streams.
  bool poll_end();
  const std::optional<int>& status() const { return status_; }

 private:
  std::string name_;
  std::unique_ptr<Subprocess> agent_;
  LineSplitter lines_[2] = {LineSplitter{kMaxStarterLine}, LineSplitter{kMaxStarterLine}};
  bool open_[2] = {true, true};
  std::optional<int> status_;
};

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

std::vector<std::string> names_of(const std::vector<StartedHost>& hosts) {
  std::vector<std::string> names;
  for (const StartedHost& host : hosts) names.push_back(host.name());
  return names;
}

class Starter {
 public:
  Starter(const RunOptions& options, const std::vector<std::string>& words,
          const Environment& environment)
      : options_(options), signals_(options.ending_signals, options.signals_named) {
    const auto plan = planned_hosts(options);
    StartSetup setup;
    setup.secret = secret_of_environment();
    if (setup.secret.empty()) setup.secret = make_job_secret();
    setup.variables = exported_variables(options, environment);
    if (options.wire == Wire::kTls) setup.variables["LOCKSTEP_TLS"] = "1";
    setup.folder = std::filesystem::current_path().string();
    check_descriptors(3 * plan.size(), counted(static_cast<int64_t>(plan.size()), "host"));
    const std::string self = own_program();
    for (const HostSlots& host : plan) hosts_.emplace_back(host.host, self, options.rsh);
    for (size_t i = 0; i < plan.size(); ++i) {
      setup.words = {fmt::format("--nnodes={}", plan.size()), fmt::format("--node_rank={}", i),
                     fmt::format("--nproc_per_node={}", plan[i].slots)};
      const auto more = words_for_agent(words, environment);
      setup.words.insert(setup.words.end(), more.begin(), more.end());
      setup.finds_port = i == 0 && plan.size() > 1 && options.master_port == 0;
      hosts_[i].send(to_line(setup));
    }
  }

  int run() {
    while (std::any_of(hosts_.begin(), hosts_.end(), [](const auto& h) { return !h.status(); })) {
      wait();
      while (const int signal = signals_.next()) pass_on(signal);
      for (StartedHost& host : hosts_) read_from(&host);
      console_.flush();
      if (console_.broken() && !ending_) nobody_reads();
      // A user may page through the output for long; agents wait for that too.
      const bool wait = console_.full() && stop_signal_ == 0;
      if (end_by_ && !wait && Deadline::at(*end_by_).passed()) end_all();
    }
    std::optional<Deadline> until;
    if (stop_signal_ != 0) until = Deadline::at(std::max(*end_by_, Deadline::after(5s).when()));
    console_.drain(until);
    if (report_) {
      console_.put(2, report_text(*report_, static_cast<int>(hosts_.size()),
                                  console_.has_shown(2, report_->stderr_tail)));
    }
    if (!report_ && !trouble_.empty()) console_.put(2, "lockstep run: " + trouble_);
    console_.drain(until);
    return exit_code_;
  }

 private:
  void wait() {
    std::vector<pollfd> items = {{signals_.fd(), POLLIN, 0}};
    bool ending = false;
    for (const StartedHost& host : hosts_) {
      // Not while the console is full: its output could not be written.
      for (const int fd : host.open_outputs()) {
        if (!console_.full()) items.push_back({fd, POLLIN, 0});
      }
      ending = ending || host.is_ending();
    }
    const bool soon = ending || end_by_ || console_.waiting_stream() >= 0;
    ::poll(items.data(), items.size(), soon ? 20 : -1);
  }

  void read_from(StartedHost* host) {
    const auto take = [&](int stream, const std::string& line) { take_line(host, line, stream); };
    // If the console is full, read later: a slow reader slows the writers down.
    if (!console_.full()) host->read(1, take);
    if (!console_.full()) host->read(2, take);
    if (host->poll_end()) ended(*host);
  }

  void take_line(StartedHost* host, const std::string& line, int stream) {
    if (stream == 1 && line.rfind(kStarterMark, 0) == 0) {
      return take_message(host, line.substr(kStarterMark.size()));
    }
    if (host->hello_received) return console_.put(stream, line);
    // Output before the agent runs is from ssh or the other host's shell; its last line may have no
    // newline.
    const size_t mark = stream == 1 ? line.find(kStarterMark) : std::string::npos;
    console_.put(stream, fmt::format("[{}] {}", host->name(), line.substr(0, mark)));
    if (mark != std::string::npos) take_message(host, line.substr(mark + kStarterMark.size()));
  }

  void take_message(StartedHost* host, const std::string& text) {
    try {
      if (text.rfind("hello ", 0) == 0) {
        host->hello_received = true;
        if (host == &hosts_[0]) send_go(hello_from_line(text.substr(6)));
      } else if (text.rfind("report ", 0) == 0 && !report_) {
        report_ = failure_from_json(text.substr(7));
      }
    } catch (const Error& error) {
      trouble_ = fmt::format("{}: {}", host->name(), error.what());
      end_all();
    }
  }

  void send_go(const StartHello& hello) {
    StartGo go;
    if (hosts_.size() > 1 && options_.rdzv_endpoint.empty()) {
      go.port = options_.master_port != 0 ? options_.master_port : hello.port;
      go.address = options_.master_addr_given ? options_.master_addr
                                              : rendezvous_address(hello, names_of(hosts_));
    }
    for (StartedHost& host : hosts_) host.send(to_line(go));
  }

  void ended(const StartedHost& host) {
    if (*host.status() == 0 && host.hello_received) return;
    const bool stopped_early = !host.hello_received && stop_signal_ != 0;
    // The remote command may return 0 although no agent ran.
    const int code = std::max(*host.status(), 1);
    if (exit_code_ == 0) exit_code_ = stopped_early ? 128 + stop_signal_ : code;
    if (!host.hello_received && !stopped_early && trouble_.empty()) {
      trouble_ =
          fmt::format("{}: no agent could be started there (exit code {} of {})", host.name(),
                      *host.status(), is_this_host(host.name()) ? "lockstep" : options_.rsh);
      end_all();
    }
    // The other agents learn of it through the job, unless this one never joined.
    const bool job_knows = report_ || stop_signal_ != 0;
    if (!job_knows && trouble_.empty()) {
      trouble_ =
          fmt::format("{}: the agent there ended: exit code {}", host.name(), *host.status());
    }
    if (!end_by_) {
      end_by_ = Deadline::after(job_knows ? options_.shutdown_timeout + 15s : 5s).when();
    }
  }

  /// Agents end at the end of their input. The second time, or before its hello, an agent's local
  /// process is killed, which ends a remote agent's input too.
  void end_all() {
    const bool again = ending_;
    ending_ = true;
    for (StartedHost& host : hosts_) {
      if (host.status()) continue;
      host.close_in();
      if (again || !host.hello_received) host.kill_group();
    }
    end_by_ = Deadline::after(options_.shutdown_timeout + 15s).when();
  }

  /// Act as any program whose output has no reader any more.
  void nobody_reads() {
    if (exit_code_ == 0) exit_code_ = 128 + SIGPIPE;
    end_all();
  }

  /// Ctrl-Z, for the ranks on all hosts.
  void suspend() {
    if (!may_be_stopped()) return;
    const auto send_to_all = [this](int signal) {
      for (StartedHost& host : hosts_) {
        if (host.hello_received) host.send(fmt::format("{}\n", signal));
      }
    };
    const auto since = std::chrono::steady_clock::now();
    send_to_all(SIGTSTP);
    ::raise(SIGSTOP);
    send_to_all(SIGCONT);
    if (end_by_) *end_by_ += std::chrono::steady_clock::now() - since;
  }

  void pass_on(int signal) {
    if (signal == SIGCHLD || signal == SIGCONT) return;
    if (signal == SIGTSTP) return suspend();
    const bool ends = options_.ending_signals.count(signal) > 0;
    if (ends && stop_signal_ == 0) stop_signal_ = signal;
    for (StartedHost& host : hosts_) {
      if (host.hello_received) {
        host.send(fmt::format("{}\n", signal));
      } else if (ends) {
        host.kill_group();  // ssh would wait for a host that does not answer
      }
    }
    if (ends && !end_by_) end_by_ = Deadline::after(options_.shutdown_timeout + 15s).when();
  }

  const RunOptions& options_;
  SignalGate signals_;
  Console console_;
  ConsoleLog log_there_{&console_};
  std::vector<StartedHost> hosts_;
  std::optional<Failure> report_;
  std::string trouble_;
  int exit_code_ = 0;
  int stop_signal_ = 0;  ///< The first signal that ended the job.
  bool ending_ = false;
  std::optional<std::chrono::steady_clock::time_point> end_by_;
};

}  // namespace

int start_on_hosts(const RunOptions& options, const std::vector<std::string>& words,
                   const Environment& environment) {
  return Starter(options, words, environment).run();
}

}  // namespace lockstep::inline internal
