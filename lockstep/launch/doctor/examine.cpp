#include "lockstep/launch/doctor/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "lockstep/base/addresses.h"
#include "lockstep/base/auth.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/literals.h"
#include "lockstep/base/proc.h"
#include "lockstep/launch/doctor/facts_json.h"
#include "lockstep/launch/doctor/links.h"
#include "lockstep/launch/doctor/probe.h"
#include "lockstep/launch/start/host_slots.h"

namespace lockstep::doctor {
namespace {

using ExamineJson = nlohmann::json;

/// The command that starts a host's probe; this host needs no rsh.
std::vector<std::string> probe_command(const ExamineOptions& options, const std::string& host) {
  // Others of 127/8 may be hosts that only rsh knows, as behind forwarded ports.
  if (host == "localhost" || host == host_name() || is_interface_address(host))
    return {own_program(), "doctor", "--probe"};
  return remote_words(options.rsh, host, shell_quoted(options.lockstep) + " doctor --probe");
}

std::chrono::milliseconds stream_time(const ExamineOptions& options) {
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(options.seconds));
}

constexpr int kClockTries = 5;

class Examination {
 public:
  explicit Examination(const ExamineOptions& options) : options_(options) {
    std::vector<std::string> names = options.hosts;
    if (names.empty()) names.push_back(host_name());
    for (const std::string& name : names) {
      HostFinding host;
      host.name = name;
      const auto words = probe_command(options, name);
      host.command = fmt::format("{}", fmt::join(words, " "));
      findings_.hosts.push_back(std::move(host));
      probes_.push_back(std::make_unique<ProbeLink>(words));
    }
  }

  Findings run() {
    ask_facts();
    ask_clocks();
    if (probes_.size() > 1) ask_links();
    if (probes_.size() > 1 && options_.measure) ask_speeds();
    end();
    return std::move(findings_);
  }

 private:
  size_t size() const { return probes_.size(); }
  bool alive(size_t host) const { return probes_[host]->problem().empty(); }
  Deadline deadline() const { return Deadline::after(options_.timeout); }
  std::vector<ExamineJson> to_all(const ExamineJson& request) const {
    return std::vector<ExamineJson>(size(), request);
  }

  /// Runs `take` on a host's answer; gives up a probe with an invalid answer.
  template <class Take>
  void take_answer(size_t host, const ExamineJson& json, const Take& take) {
    if (json.is_null()) return;
    try {
      if (json.contains("error")) {
        probes_[host]->give_up(json.at("error").get<std::string>());
      } else {
        take(json);
      }
    } catch (const ExamineJson::exception& error) {
      probes_[host]->give_up(
          fmt::format("it speaks otherwise than this lockstep ({})", error.what()));
    }
  }

  void ask_facts() {
    std::vector<std::string> names;
    for (const auto& host : findings_.hosts) names.push_back(host.name);
    ExamineJson request = {{"do", "facts"},
                           {"hosts", names},
                           {"ports", options_.ports},
                           {"cookie", make_job_secret().substr(0, kCookieBytes)},
                           {"folder", options_.folder},
                           {"log_folder", options_.log_folder},
                           {"hccn_conf", options_.hccn_conf},
                           {"lifetime_s", longest_examination(options_, size()).count()}};
    auto requests = to_all(request);
    for (size_t i = 0; i < size(); ++i) requests[i]["me"] = i;
    const auto answers = ask_all(probes_, requests, deadline());
    for (size_t i = 0; i < size(); ++i) {
      take_answer(i, answers[i].json, [&](const ExamineJson& json) {
        findings_.hosts[i].facts = json.at("facts").get<HostFacts>();
      });
    }
  }

  /// As in NTP: the answer was written between two readings of our clock; the closest pair counts.
  void ask_clocks() {
    using std::chrono::duration;
    std::vector<double> best(size(), 1e9);
    for (int attempt = 0; attempt < kClockTries; ++attempt) {
      const double wall = seconds_since_1970();
      const auto start = Deadline::Clock::now();
      const auto answers = ask_all(probes_, to_all({{"do", "clock"}}), deadline());
      for (size_t i = 0; i < size(); ++i) {
        take_answer(i, answers[i].json, [&](const ExamineJson& json) {
          const double way = duration<double>(answers[i].at - start).count();
          if (way >= best[i]) return;
          best[i] = way;
          findings_.hosts[i].clock_error_s = way / 2;
          findings_.hosts[i].clock_offset_s = json.at("clock").get<double>() - (wall + way / 2);
        });
      }
    }
  }

  ExamineJson target(size_t host, const ListeningPort& port) const {
    return {{"index", host},
            {"name", findings_.hosts[host].name},
            {"asked", port.asked},
            {"port", port.number}};
  }

  void ask_links() {
    std::vector<ExamineJson> requests(size());
    std::vector<std::vector<LinkFinding>> tries(size());
    for (size_t from = 0; from < size(); ++from) {
      auto targets = ExamineJson::array();
      for (size_t to = 0; to < size(); ++to) {
        if (to == from || !alive(to)) continue;
        for (const ListeningPort& port : findings_.hosts[to].facts.ports) {
          if (port.number == 0) continue;
          targets.push_back(target(to, port));
          tries[from].push_back({static_cast<int>(from), static_cast<int>(to), port.asked, ""});
        }
      }
      requests[from] = {{"do", "links"}, {"targets", targets}};
    }
    const auto answers = ask_all(probes_, requests, deadline());
    for (size_t from = 0; from < size(); ++from) {
      take_answer(from, answers[from].json, [&](const ExamineJson& json) {
        const auto problems = json.at("problems").get<std::vector<std::string>>();
        for (size_t i = 0; i < std::min(problems.size(), tries[from].size()); ++i) {
          tries[from][i].problem = problems[i];
          findings_.links.push_back(tries[from][i]);
        }
      });
    }
  }

  /// Notes for each pair the first port of the second host that the first reached.
  void note_reached() {
    for (const LinkFinding& link : findings_.links) {
      if (!link.problem.empty() || reached_.contains({link.from, link.to})) continue;
      for (const auto& port : findings_.hosts[static_cast<size_t>(link.to)].facts.ports) {
        if (port.asked != link.port || port.number == 0) continue;
        reached_[{link.from, link.to}] = &port;
        break;
      }
    }
  }

  void ask_speeds() {
    note_reached();
    for (auto& round : speed_rounds(static_cast<int>(size()))) {
      measure_round(round);
      for (auto& [from, to] : round) std::swap(from, to);
      measure_round(round);
    }
  }

  void measure_round(const std::vector<std::pair<int, int>>& round) {
    std::vector<ExamineJson> requests(size());
    for (const auto& [from, to] : round) {
      const auto port = reached_.find({from, to});
      if (port == reached_.end() || !alive(static_cast<size_t>(to))) continue;
      requests[static_cast<size_t>(from)] = {
          {"do", "measure"},
          {"target", target(static_cast<size_t>(to), *port->second)},
          {"seconds", options_.seconds}};
    }
    const auto answers =
        ask_all(probes_, requests, Deadline::after(options_.timeout + stream_time(options_)));
    for (const auto& [from, to] : round) {
      const ExamineJson& json = answers[static_cast<size_t>(from)].json;
      if (json.is_null()) continue;
      PairSpeed speed{from, to, 0, 0, ""};
      try {
        speed.problem = json.value("error", "");
        speed.latency_us = json.value("latency_us", 0.0);
        speed.gbit_s = json.value("gbit_s", 0.0);
      } catch (const ExamineJson::exception&) {
        speed.problem = "sent an answer that is none";
      }
      findings_.speeds.push_back(std::move(speed));
    }
  }

  void end() {
    for (auto& probe : probes_) probe->close();
    const Deadline last = Deadline::after(5s);
    for (size_t i = 0; i < size(); ++i) {
      findings_.hosts[i].problem = probes_[i]->problem();
      if (alive(i)) probes_[i]->wait_end(last);
    }
    probes_.clear();
  }

  const ExamineOptions& options_;
  Findings findings_;
  std::map<std::pair<int, int>, const ListeningPort*> reached_;
  std::vector<std::unique_ptr<ProbeLink>> probes_;
};

}  // namespace

Rounds tournament(int n) {
  const int places = n + n % 2;  // with an odd number one host rests each round
  Rounds rounds;
  for (int round = 0; round + 1 < places; ++round) {
    std::vector<std::pair<int, int>> pairs;
    const auto at = [&](int place) {
      return place == 0 ? 0 : (place - 1 + round) % (places - 1) + 1;
    };
    for (int i = 0; i < places / 2; ++i) {
      const int a = at(i);
      const int b = at(places - 1 - i);
      if (a < n && b < n) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

Rounds speed_rounds(int n) {
  constexpr int kAllPairs = 64;
  constexpr int kByLot = 8;
  if (n <= kAllPairs) return tournament(n);
  Rounds rounds(n % 2 == 0 ? 2 : 3);
  for (int host = 0; host < n; ++host) {
    const bool closes_odd_ring = n % 2 != 0 && host == n - 1;
    rounds[closes_odd_ring ? 2 : static_cast<size_t>(host % 2)].emplace_back(host, (host + 1) % n);
  }
  std::mt19937 lot(20'000);  // the standard fixes its numbers, but not the order of std::shuffle
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (int round = 0; round < kByLot; ++round) {
    for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[lot() % (i + 1)]);
    auto& pairs = rounds.emplace_back();
    for (size_t i = 0; i + 1 < order.size(); i += 2) pairs.emplace_back(order[i], order[i + 1]);
  }
  return rounds;
}

std::chrono::seconds longest_examination(const ExamineOptions& options, size_t num_hosts) {
  constexpr int kOthers = 2;  // facts and links
  const auto rounds = 2 * static_cast<int>(speed_rounds(static_cast<int>(num_hosts)).size());
  return std::chrono::ceil<std::chrono::seconds>((kOthers + kClockTries) * options.timeout +
                                                 rounds * (options.timeout + stream_time(options)));
}

Findings examine(const ExamineOptions& options) {
  return Examination(options).run();
}

}  // namespace lockstep::doctor
