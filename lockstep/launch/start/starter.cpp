#include "lockstep/launch/start/starter.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "lockstep/base/auth.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/socket.h"
#include "lockstep/launch/agent/console.h"
#include "lockstep/launch/agent/failure.h"
#include "lockstep/launch/agent/line_splitter.h"
#include "lockstep/launch/agent/machine.h"
#include "lockstep/launch/agent/signals.h"
#include "lockstep/launch/identity.h"
#include "lockstep/launch/secret.h"
#include "lockstep/launch/start/host_slots.h"
#include "lockstep/launch/start/remote_agent.h"
#include "lockstep/launch/start/start_messages.h"
#include "lockstep/launch/subprocess.h"

namespace lockstep {
namespace {

struct StartedHost {
  std::string name;
  std::unique_ptr<Subprocess> agent;
  LineSplitter out{kMaxStarterLine}, err{kMaxStarterLine};
  bool out_open = true, err_open = true;
  bool said_hello = false;
  std::optional<int> status;
};

std::string without_user(const std::string& host) {
  const size_t at = host.find('@');
  return at == std::string::npos ? host : host.substr(at + 1);
}

bool is_this_host(const std::string& host) {
  const std::string own = host_name();
  return is_loopback(host) || host == own || host == own.substr(0, own.find('.'));
}

std::vector<HostSlots> planned_hosts(const RunOptions& options) {
  const auto given =
      options.host_file.empty()
          ? parse_host_list(options.hosts, "--host")
          : parse_host_file(read_file(options.host_file, 1 << 24), options.host_file);
  return plan_hosts(given, {options.total_ranks, options.nproc_given ? options.nproc_per_node : 0,
                            options.oversubscribe});
}

std::map<std::string, std::string> exported_variables(const RunOptions& options,
                                                      const Environment& environment) {
  std::map<std::string, std::string> variables;
  for (const char* name : {"OMP_NUM_THREADS", "PYTHON_EXEC", "LOCKSTEP_LOG_LEVEL"}) {
    const auto found = environment.find(name);
    if (found != environment.end()) variables[name] = found->second;
  }
  for (const std::string& item : options.exported) {
    const size_t equals = item.find('=');
    const std::string name = item.substr(0, equals);
    const auto found = environment.find(name);
    if (equals == std::string::npos && found == environment.end()) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("-x {}: it is not set here", name));
    }
    variables[name] = equals == std::string::npos ? found->second : item.substr(equals + 1);
  }
  return variables;
}

class Starter {
 public:
  Starter(const RunOptions& options, const std::vector<std::string>& words,
          const Environment& environment)
      : options_(options), signals_(options.ending_signals) {
    const auto plan = planned_hosts(options);
    StartSetup setup;
    setup.secret = secret_of_environment();
    if (setup.secret.empty()) setup.secret = make_job_secret();
    setup.variables = exported_variables(options, environment);
    setup.folder = std::filesystem::current_path().string();
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    for (const HostSlots& host : plan) start(host.host, self);
    for (size_t i = 0; i < plan.size(); ++i) {
      setup.words = {fmt::format("--nnodes={}", plan.size()), fmt::format("--node_rank={}", i),
                     fmt::format("--nproc_per_node={}", plan[i].slots)};
      const auto more = words_for_agent(words, environment);
      setup.words.insert(setup.words.end(), more.begin(), more.end());
      setup.finds_port = i == 0 && plan.size() > 1 && options.master_port == 0;
      say(&hosts_[i], to_line(setup));
    }
  }

  int run() {
    while (std::any_of(hosts_.begin(), hosts_.end(), [](const auto& h) { return !h.status; })) {
      wait();
      while (const int signal = signals_.next()) pass_on(signal);
      for (StartedHost& host : hosts_) hear(&host);
      console_.flush();
      if (console_.broken() && !ending_) nobody_reads();
      // Who pages through the output may take long; agents wait for that too.
      if (end_by_ && !console_.full() && Deadline::at(*end_by_).passed()) end_all();
    }
    console_.drain();
    if (report_) console_.put(2, report_text(*report_, static_cast<int>(hosts_.size())));
    if (!report_ && !trouble_.empty()) console_.put(2, "lockstep run: " + trouble_);
    console_.drain();
    return exit_code_;
  }

 private:
  void start(const std::string& name, const std::string& self) {
    StartedHost host;
    host.name = name;
    const bool here = is_this_host(name);
    const std::string command = shell_quoted(self) + " run " + kStartedWord;
    host.agent =
        std::make_unique<Subprocess>(here ? std::vector<std::string>{self, "run", kStartedWord}
                                          : remote_words(options_.rsh, name, command));
    hosts_.push_back(std::move(host));
  }

  void say(StartedHost* host, const std::string& line) {
    if (host->status) return;
    try {
      send_all(host->agent->in(), line.data(), line.size(), Deadline::after(10s), host->name);
    } catch (const Error&) {
      host->agent->close_in();  // its end says why
    }
  }

  void wait() {
    std::vector<pollfd> items = {{signals_.fd(), POLLIN, 0}};
    bool ending = false;
    for (const StartedHost& host : hosts_) {
      // Not while the console is full: nothing would be read.
      if (host.out_open && !console_.full()) items.push_back({host.agent->out(), POLLIN, 0});
      if (host.err_open && !console_.full()) items.push_back({host.agent->err(), POLLIN, 0});
      ending = ending || (!host.out_open && !host.err_open && !host.status);
    }
    const bool soon = ending || end_by_ || console_.waiting_stream() >= 0;
    ::poll(items.data(), items.size(), soon ? 20 : -1);
  }

  void hear(StartedHost* host) {
    if (host->out_open) host->out_open = read_lines(host, host->agent->out(), &host->out, 1);
    if (host->err_open) host->err_open = read_lines(host, host->agent->err(), &host->err, 2);
    if (host->out_open || host->err_open || host->status) return;
    host->status = host->agent->poll_end();
    if (host->status) ended(*host);
  }

  bool read_lines(StartedHost* host, int fd, LineSplitter* splitter, int stream) {
    if (console_.full()) return true;  // later: who does not read holds up who writes
    static std::array<char, 64 << 10> buffer;
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    const bool open = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    auto lines = splitter->feed({buffer.data(), got > 0 ? static_cast<size_t>(got) : 0});
    if (!open) {
      if (std::string last = splitter->finish(); !last.empty()) lines.push_back(std::move(last));
    }
    for (const std::string& line : lines) take_line(host, line, stream);
    return open;
  }

  void take_line(StartedHost* host, const std::string& line, int stream) {
    if (stream == 1 && line.rfind(kStarterMark, 0) == 0) {
      return take_message(host, line.substr(kStarterMark.size()));
    }
    // What is said before the agent runs is ssh's, or the other host's shell's.
    console_.put(stream, host->said_hello ? line : fmt::format("[{}] {}", host->name, line));
  }

  void take_message(StartedHost* host, const std::string& text) {
    try {
      if (text.rfind("hello ", 0) == 0) {
        host->said_hello = true;
        if (host == &hosts_[0]) send_go(hello_from_line(text.substr(6)));
      } else if (text.rfind("report ", 0) == 0 && !report_) {
        report_ = failure_from_json(text.substr(7));
      }
    } catch (const Error& error) {
      trouble_ = fmt::format("{}: {}", host->name, error.what());
      end_all();
    }
  }

  void send_go(const StartHello& hello) {
    StartGo go;
    if (hosts_.size() > 1 && options_.rdzv_endpoint.empty()) {
      go.port = options_.master_port != 0 ? options_.master_port : hello.port;
      go.address = options_.master_addr_given ? options_.master_addr : meeting_address(hello);
    }
    for (StartedHost& host : hosts_) say(&host, to_line(go));
  }

  /// Of the first host, for all others.
  std::string meeting_address(const StartHello& hello) const {
    if (!hello.address.empty() && !is_loopback(hello.address)) return hello.address;
    const std::string name = without_user(hosts_[0].name);
    if (!is_this_host(name)) return name;
    bool all_here = true;
    for (const StartedHost& host : hosts_) {
      if (is_this_host(host.name)) continue;
      all_here = false;
      try {
        return local_address_towards(without_user(host.name));
      } catch (const Error&) {  // a name that only ssh knows, or nobody: ssh says so
      }
    }
    return all_here ? "127.0.0.1" : host_name();
  }

  void ended(const StartedHost& host) {
    if (*host.status == 0) return;
    const bool stopped_early = !host.said_hello && stop_signal_ != 0;
    if (exit_code_ == 0) exit_code_ = stopped_early ? 128 + stop_signal_ : *host.status;
    if (!host.said_hello && !stopped_early && trouble_.empty()) {
      trouble_ = fmt::format("{}: no agent could be started there (exit code {} of {})", host.name,
                             *host.status, is_this_host(host.name) ? "lockstep" : options_.rsh);
      end_all();
    }
    // The others know by themselves, through the job, unless this one never got there.
    const bool job_knows = report_ || stop_signal_ != 0;
    if (!job_knows && trouble_.empty()) {
      trouble_ = fmt::format("{}: the agent there ended: exit code {}", host.name, *host.status);
    }
    if (!end_by_) {
      end_by_ = Deadline::after(job_knows ? options_.shutdown_timeout + 15s : 5s).when();
    }
  }

  /// The end of their input ends agents; a second time, or before they say anything, the processes
  /// here are killed, which ends the input of the others' too.
  void end_all() {
    const bool again = ending_;
    ending_ = true;
    for (StartedHost& host : hosts_) {
      if (host.status) continue;
      host.agent->close_in();
      if (again || !host.said_hello) host.agent->kill_group();
    }
    end_by_ = Deadline::after(options_.shutdown_timeout + 15s).when();
  }

  /// As for any program whose output nobody reads any more.
  void nobody_reads() {
    if (exit_code_ == 0) exit_code_ = 128 + SIGPIPE;
    end_all();
  }

  void pass_on(int signal) {
    if (signal == SIGCHLD) return;
    const bool ends = options_.ending_signals.count(signal) > 0;
    if (ends && stop_signal_ == 0) stop_signal_ = signal;
    for (StartedHost& host : hosts_) {
      if (host.said_hello) {
        say(&host, fmt::format("{}\n", signal));
      } else if (ends) {
        host.agent->kill_group();  // ssh would wait for a host that does not answer
      }
    }
    if (ends && !end_by_) end_by_ = Deadline::after(options_.shutdown_timeout + 15s).when();
  }

  const RunOptions& options_;
  SignalGate signals_;
  Console console_;
  std::vector<StartedHost> hosts_;
  std::optional<Failure> report_;
  std::string trouble_;
  int exit_code_ = 0;
  int stop_signal_ = 0;  ///< The first that ended the job.
  bool ending_ = false;
  std::optional<std::chrono::steady_clock::time_point> end_by_;
};

}  // namespace

int start_on_hosts(const RunOptions& options, const std::vector<std::string>& words,
                   const Environment& environment) {
  return Starter(options, words, environment).run();
}

}  // namespace lockstep
