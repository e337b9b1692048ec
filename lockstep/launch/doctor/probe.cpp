#include "lockstep/launch/doctor/probe.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>

#include "lockstep/base/clock.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/launch/doctor/facts_json.h"
#include "lockstep/launch/doctor/gather.h"
#include "lockstep/launch/doctor/links.h"

namespace lockstep::doctor {
namespace {

/// Until the number of requests is known.
constexpr unsigned kLifetime = 600;  // s
constexpr auto kTryTime = 5s;

LinkTarget target_of(const nlohmann::json& json) {
  return {json.at("index").get<int>(), json.at("name").get<std::string>(),
          json.at("asked").get<int>(), json.at("port").get<int>()};
}

class Prober {
 public:
  nlohmann::json answer(const nlohmann::json& request) {
    const auto what = request.at("do").get<std::string>();
    if (what == "facts") return facts(request);
    if (what == "clock") return {{"clock", seconds_since_1970()}};
    if (what == "links") return links(request);
    if (what == "measure") return measure(request);
    throw Error(ErrorCode::kInvalidArgument, "unknown request '" + what + "'");
  }

 private:
  nlohmann::json facts(const nlohmann::json& request) {
    names_ = request.at("hosts").get<std::vector<std::string>>();
    cookie_ = request.at("cookie").get<std::string>();
    if (cookie_.size() != kCookieBytes) throw Error(ErrorCode::kInvalidArgument, "cookie");
    ::alarm(request.value("lifetime_s", kLifetime));
    const auto me = request.at("me").get<size_t>();
    server_ = std::make_unique<LinkServer>(cookie_, static_cast<int>(me));
    std::vector<ListeningPort> ports;
    for (const int port : request.at("ports").get<std::vector<int>>())
      ports.push_back(server_->open(names_.at(me), port));
    server_->start();
    HostFacts facts = gather_facts({names_, request.at("folder").get<std::string>(),
                                    request.at("log_folder").get<std::string>(),
                                    request.at("hccn_conf").get<std::string>()});
    facts.ports = std::move(ports);
    return {{"facts", facts}};
  }

  nlohmann::json links(const nlohmann::json& request) {
    std::vector<LinkTarget> targets;
    for (const auto& json : request.at("targets")) targets.push_back(target_of(json));
    return {{"problems", try_links(targets, cookie_, names_, kTryTime)}};
  }

  nlohmann::json measure(const nlohmann::json& request) {
    const std::chrono::duration<double> seconds(request.at("seconds").get<double>());
    const LinkSpeed speed =
        measure_link(target_of(request.at("target")), cookie_,
                     std::chrono::duration_cast<Deadline::Clock::duration>(seconds));
    return {{"latency_us", speed.latency_us}, {"gbit_s", speed.gbit_s}};
  }

  std::vector<std::string> names_;
  std::string cookie_;
  std::unique_ptr<LinkServer> server_;
};

constexpr size_t kMaxAnswer = size_t{16} << 20;
constexpr size_t kMaxErrors = 4096;

/// The last line that is not empty.
std::string last_line(const std::string& text) {
  const auto lines = split(text, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const size_t end = line->find_last_not_of(" \r\t");
    if (end != std::string::npos) return line->substr(0, std::min<size_t>(end + 1, 200));
  }
  return "";
}

}  // namespace

int probe() {
  ::alarm(kLifetime);  // no probe stays behind, whatever happens to the other end
  Prober prober;
  std::string line;
  while (std::getline(std::cin, line)) {
    nlohmann::json answer;
    try {
      answer = prober.answer(nlohmann::json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    const std::string text = to_line(answer);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

ProbeLink::ProbeLink(const std::vector<std::string>& words) {
  try {
    program_.emplace(words);
  } catch (const Error& error) {
    problem_ = error.what();
  }
}

void ProbeLink::give_up(const std::string& why) {
  if (problem_.empty()) problem_ = why;
}

void ProbeLink::close() {
  if (program_) program_->close_in();
}

void ProbeLink::write_some() {
  const ssize_t put = ::send(program_->in(), output_.data(), output_.size(), MSG_NOSIGNAL);
  if (put > 0) output_.erase(0, static_cast<size_t>(put));
  // A probe that does not read has ended; its output has the reason.
  if (put < 0 && errno != EAGAIN && errno != EINTR) output_.clear();
}

std::optional<nlohmann::json> ProbeLink::read_some() {
  if (err_open_) err_open_ = read_available(program_->err(), &errors_, kMaxErrors);
  const bool open = read_available(program_->out(), &input_, kMaxAnswer);
  // Programs of a login shell may print lines of their own before the answer.
  for (size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
    auto json = nlohmann::json::parse(input_.substr(0, end), nullptr, false);
    input_.erase(0, end + 1);
    if (json.is_object()) return json;
  }
  if (!open) ended();
  if (input_.size() >= kMaxAnswer) give_up("its answer has no end");
  return std::nullopt;
}

void ProbeLink::ended() {
  const auto status = program_->wait(Deadline::after(2s));
  if (err_open_) read_available(program_->err(), &errors_, kMaxErrors);
  const std::string said = last_line(errors_.empty() ? input_ : errors_);
  give_up(fmt::format("the command ended with {}{}{}",
                      status ? fmt::format("exit code {}", *status) : "its output closed",
                      said.empty() ? "" : ": ", said));
}

std::vector<ProbeAnswer> ask_all(std::vector<std::unique_ptr<ProbeLink>>& probes,
                                 const std::vector<nlohmann::json>& requests, Deadline deadline) {
  std::vector<ProbeAnswer> answers(probes.size());
  std::vector<bool> waiting(probes.size());
  for (size_t i = 0; i < probes.size(); ++i) {
    waiting[i] = !requests[i].is_null() && probes[i]->problem().empty();
    if (waiting[i]) probes[i]->send(to_line(requests[i]));
  }
  while (true) {
    std::vector<pollfd> items;
    std::vector<size_t> owner;
    for (size_t i = 0; i < probes.size(); ++i) {
      if (!waiting[i]) continue;
      const Subprocess& program = probes[i]->program();
      items.push_back({program.out(), POLLIN, 0});
      items.push_back({probes[i]->err_open() ? program.err() : -1, POLLIN, 0});
      items.push_back({probes[i]->wants_to_write() ? program.in() : -1, POLLOUT, 0});
      owner.insert(owner.end(), 3, i);
    }
    if (items.empty()) return answers;
    if (deadline.passed()) break;
    ::poll(items.data(), items.size(), deadline.left_poll_ms());
    for (size_t k = 0; k < items.size(); ++k) {
      const size_t i = owner[k];
      if (items[k].revents == 0 || !waiting[i]) continue;
      if (k % 3 == 2) {
        probes[i]->write_some();
        continue;
      }
      if (auto json = probes[i]->read_some()) {
        answers[i] = {std::move(*json), Deadline::Clock::now()};
        waiting[i] = false;
      } else if (!probes[i]->problem().empty()) {
        waiting[i] = false;
      }
    }
  }
  for (size_t i = 0; i < probes.size(); ++i) {
    if (waiting[i]) probes[i]->give_up("no answer in time");
  }
  return answers;
}

}  // namespace lockstep::doctor
