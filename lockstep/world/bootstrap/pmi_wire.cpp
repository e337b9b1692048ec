#include "lockstep/world/bootstrap/pmi_wire.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "lockstep/base/env.h"
#include "lockstep/base/number.h"
#include "lockstep/base/socket.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/world/bootstrap/exchange.h"
#include "lockstep/world/detect/reader.h"

namespace lockstep::inline internal {
namespace {

constexpr size_t kMaxPmiLine = 8192;

int pmi_id(const Environment& environment) {
  return static_cast<int>(
      parse_int(environment.at("PMI_ID"), 0, 1 << 30, "environment variable PMI_ID"));
}

constexpr const char* kPmiKey = "lockstep-bootstrap";

void publish_by(PmiWire& wire, const std::string& line, Deadline deadline) {
  wire.init(deadline);
  wire.put(kPmiKey, line, deadline);
  wire.barrier(deadline);
  wire.finish(deadline);
}

std::string receive_by(PmiWire& wire, Deadline deadline) {
  wire.init(deadline);
  wire.barrier(deadline);
  auto line = wire.get(kPmiKey, deadline);
  wire.finish(deadline);
  return line;
}

class PmiExchange final : public RankExchange {
 public:
  explicit PmiExchange(int fd) : wire_(fd) {}

  void publish(const std::string& line, Deadline deadline) override {
    publish_by(wire_, line, deadline);
  }
  std::string receive(Deadline deadline) override { return receive_by(wire_, deadline); }

 private:
  PmiWire wire_;
};

class PmiPortExchange final : public RankExchange {
 public:
  explicit PmiPortExchange(const Environment& environment) : environment_(environment) {}

  void publish(const std::string& line, Deadline deadline) override {
    PmiPort port(environment_, deadline);
    publish_by(port.wire(), line, deadline);
  }
  std::string receive(Deadline deadline) override {
    PmiPort port(environment_, deadline);
    return receive_by(port.wire(), deadline);
  }

 private:
  const Environment environment_;
};

}  // namespace

std::map<std::string, std::string> parse_pmi_line(const std::string& line) {
  std::map<std::string, std::string> words;
  for (const std::string& word : split(line, ' ')) {
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    // The value of msg may have several words; it is not used here.
    if (equals == std::string::npos && words.contains("msg")) continue;
    if (equals == 0 || equals == std::string::npos)
      throw Error(ErrorCode::kCorrupt, fmt::format("PMI: '{}' is not NAME=VALUE", word));
    words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  if (!words.contains("cmd")) throw Error(ErrorCode::kCorrupt, "PMI: a line without cmd");
  return words;
}

std::string PmiWire::read_line(Deadline deadline) {
  while (true) {
    if (const size_t end = input_.find('\n'); end != std::string::npos) {
      std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      return line;
    }
    if (input_.size() > kMaxPmiLine) throw Error(ErrorCode::kCorrupt, "PMI: a line without end");
    pollfd item{fd_, POLLIN, 0};
    const int ready = ::poll(&item, 1, deadline.left_poll_ms());
    if (ready < 0 && errno != EINTR) throw io_error("poll PMI_FD");
    if (ready == 0)
      throw Error(ErrorCode::kTimeout,
                  "the process manager does not answer at PMI_FD; did every "
                  "rank come here?");
    if (ready <= 0) continue;
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(fd_, bytes.data(), bytes.size());
    if (got < 0 && errno != EINTR && errno != EAGAIN) throw io_error("read PMI_FD");
    if (got == 0) throw Error(ErrorCode::kIo, "the process manager closed PMI_FD");
    if (got > 0) input_.append(bytes.data(), static_cast<size_t>(got));
  }
}

std::map<std::string, std::string> PmiWire::ask(const std::string& line, const std::string& answer,
                                                Deadline deadline) {
  const std::string out = line + "\n";
  // Not write(): a lost manager must be an error, not SIGPIPE.
  send_all(fd_, out.data(), out.size(), deadline, "the PMI server");
  auto words = parse_pmi_line(read_line(deadline));
  if (words["cmd"] != answer)
    throw Error(ErrorCode::kCorrupt,
                fmt::format("PMI: '{}' was answered by '{}'", line, words["cmd"]));
  if (words.contains("rc") && words["rc"] != "0") {
    throw Error(ErrorCode::kUnavailable, fmt::format("PMI: '{}' failed with rc={}",
                                                     line.substr(0, line.find(' ')), words["rc"]));
  }
  return words;
}

PmiWire::Introduction PmiWire::introduce(int id, Deadline deadline) {
  ask(fmt::format("cmd=initack pmiid={}", id), "initack", deadline);
  std::map<std::string, std::string> told;
  for (int line = 0; line < 3; ++line) told.merge(parse_pmi_line(read_line(deadline)));
  const auto number = [&](const char* name, int64_t lo, int64_t hi) {
    const std::string& text = told[name];
    const auto value = as_number<int64_t>(text);
    if (value && *value >= lo && *value <= hi) return static_cast<int>(*value);
    throw Error(ErrorCode::kCorrupt,
                fmt::format("PMI: process {} was told {}='{}'", id, name, text));
  };
  Introduction own;
  own.size = number("size", 1, kMaxRanks);
  own.rank = number("rank", 0, own.size - 1);
  return own;
}

void PmiWire::init(Deadline deadline) {
  ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline);
  kvs_name_ = ask("cmd=get_my_kvsname", "my_kvsname", deadline)["kvsname"];
}

void PmiWire::put(const std::string& key, const std::string& value, Deadline deadline) {
  ask(fmt::format("cmd=put kvsname={} key={} value={}", kvs_name_, key, value), "put_result",
      deadline);
}

void PmiWire::barrier(Deadline deadline) {
  ask("cmd=barrier_in", "barrier_out", deadline);
}

std::string PmiWire::get(const std::string& key, Deadline deadline) {
  return ask(fmt::format("cmd=get kvsname={} key={}", kvs_name_, key), "get_result",
             deadline)["value"];
}

void PmiWire::finish(Deadline deadline) {
  ask("cmd=finalize", "finalize_ack", deadline);
}

PmiPort::PmiPort(const Environment& environment, Deadline deadline)
    : fd_(tcp_connect(parse_endpoint(environment.at("PMI_PORT"), 0), deadline)),
      wire_(fd_.get()),
      own_(wire_.introduce(pmi_id(environment), deadline)) {}

std::shared_ptr<RankExchange> open_pmi_exchange(int fd) {
  if (::fcntl(fd, F_GETFD) < 0) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("PMI_FD={} is not open: a program between mpiexec and this process "
                            "closed it",
                            fd));
  }
  return std::make_shared<PmiExchange>(fd);
}

std::shared_ptr<RankExchange> open_pmi_port_exchange(const Environment& environment) {
  return std::make_shared<PmiPortExchange>(environment);
}

}  // namespace lockstep::inline internal
