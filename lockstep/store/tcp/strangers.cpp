#include "lockstep/store/tcp/strangers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::inline internal {

void Strangers::add(uint64_t id, const std::string& host, Time now) {
  all_.emplace(id, Stranger{host, now});
  if (!host.empty() && ++of_host_[host] == kMostOfAHost + 1) ++crowds_;
}

void Strangers::restart(Time now) {
  for (auto& [id, stranger] : all_) stranger.came = now;
}

void Strangers::forget(uint64_t id) {
  const auto it = all_.find(id);
  if (it == all_.end()) return;
  if (const auto host = of_host_.find(it->second.host); host != of_host_.end()) {
    if (host->second-- == kMostOfAHost + 1) --crowds_;
    if (host->second == 0) of_host_.erase(host);
  }
  all_.erase(it);
}

bool Strangers::crowded(const Stranger& stranger) const {
  const auto host = of_host_.find(stranger.host);
  return all_.size() > kMany && host != of_host_.end() && host->second > kMostOfAHost;
}

std::vector<Strangers::Overdue> Strangers::overdue(Time now) {
  std::vector<Overdue> result;
  auto it = all_.begin();
  while (it != all_.end()) {
    const auto& [id, stranger] = *it++;
    const auto age = now - stranger.came;
    if (age < std::min<Time::duration>(limit_, kCrowdLimit)) break;
    const bool late = age >= limit_;
    if (!late && !(age >= kCrowdLimit && crowded(stranger))) continue;
    result.push_back({id, !late});
    forget(id);
  }
  return result;
}

std::optional<std::chrono::milliseconds> Strangers::due_in(Time now) const {
  using std::chrono::milliseconds;
  constexpr milliseconds kLook{100};
  if (all_.empty()) return std::nullopt;
  const auto left = std::chrono::ceil<milliseconds>(all_.begin()->second.came + limit_ - now);
  const bool crowded = crowds_ > 0 && all_.size() > kMany;
  return std::clamp(left, milliseconds(0), crowded ? kLook : milliseconds::max());
}

std::optional<std::string> Refusals::note(const std::string& host, Time now) {
  auto it = hosts_.find(host);
  if (it != hosts_.end() && now < it->second.reported + kPeriod) {
    ++it->second.unreported;
    return std::nullopt;
  }
  if (it == hosts_.end() && hosts_.size() >= kMostHosts) {
    std::erase_if(hosts_, [&](const auto& each) { return now >= each.second.reported + kPeriod; });
    if (hosts_.size() >= kMostHosts) return std::nullopt;
  }
  Host& entry = hosts_[host];
  const long unreported = std::exchange(entry.unreported, 0);
  entry.reported = now;
  return unreported == 0
             ? ""
             : fmt::format(" ({} more of that host since the last such line)", unreported);
}

}  // namespace lockstep::inline internal
