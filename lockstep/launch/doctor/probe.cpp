#include "lockstep/launch/doctor/probe.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>

#include "lockstep/base/literals.h"
#include "lockstep/error.h"
#include "lockstep/launch/doctor/facts_json.h"
#include "lockstep/launch/doctor/gather.h"
#include "lockstep/launch/doctor/links.h"

namespace lockstep::doctor {
namespace {

using ProbeJson = nlohmann::json;

/// Until the number of requests is known.
constexpr unsigned kLifetime = 600;  // s
constexpr auto kTryTime = 5s;

LinkTarget target_of(const ProbeJson& json) {
  return {json.at("index").get<int>(), json.at("name").get<std::string>(),
          json.at("asked").get<int>(), json.at("port").get<int>()};
}

class Prober {
 public:
  ProbeJson answer(const ProbeJson& request) {
    const auto what = request.at("do").get<std::string>();
    if (what == "facts") return facts(request);
    if (what == "clock") {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      return {{"clock", std::chrono::duration<double>(now).count()}};
    }
    if (what == "links") return links(request);
    if (what == "measure") return measure(request);
    throw Error(ErrorCode::kInvalidArgument, "unknown request '" + what + "'");
  }

 private:
  ProbeJson facts(const ProbeJson& request) {
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

  ProbeJson links(const ProbeJson& request) {
    std::vector<LinkTarget> targets;
    for (const auto& json : request.at("targets")) targets.push_back(target_of(json));
    return {{"problems", try_links(targets, cookie_, names_, kTryTime)}};
  }

  ProbeJson measure(const ProbeJson& request) {
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

}  // namespace

int probe() {
  ::alarm(kLifetime);  // no probe stays behind, whatever happens to the other end
  Prober prober;
  std::string line;
  while (std::getline(std::cin, line)) {
    ProbeJson answer;
    try {
      answer = prober.answer(ProbeJson::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    const std::string text = to_line(answer);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace lockstep::doctor
