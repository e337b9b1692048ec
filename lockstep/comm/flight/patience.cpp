#include "lockstep/comm/flight/patience.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::inline internal {
namespace {

/// Null while the event is being written, or if another event has taken its place.
const FlightEvent* event_at(const FlightMemory& memory, uint64_t number) {
  const FlightEvent& event = memory.events[(number - 1) % kFlightEvents];
  return event.number.load() == number ? &event : nullptr;
}

std::pair<uint16_t, std::string> kind_of(const FlightEvent& event) {
  return {event.group, std::string(event.call, ::strnlen(event.call, sizeof event.call))};
}

/// The experience that determines how long a call may take.
const Experience& telling(const Experience& of_kind, const Experience& of_group) {
  return of_kind.calls >= kFewestCalls ? of_kind : of_group;
}

void add_call(int64_t took_ns, Experience* experience) {
  ++experience->calls;
  experience->longest_ns = std::max(experience->longest_ns, took_ns);
}

}  // namespace

int64_t patience_ns(const Experience& of_kind, const Experience& of_group) {
  const Experience& before = telling(of_kind, of_group);
  const int64_t least = of_kind.calls >= kFewestCalls    ? kLeastPatienceNs
                        : of_group.calls >= kFewestCalls ? kLeastPatienceOfRareNs
                                                         : kPatienceAtFirstNs;
  return std::max(least, kPatience * before.longest_ns);
}

void Patience::learn(const FlightEvent& event, int64_t took_ns) {
  if (event.failed != 0) return;
  add_call(took_ns, &before_[kind_of(event)]);
  add_call(took_ns, &of_group_[event.group]);
}

std::vector<Overdue> Patience::look(const FlightMemory& memory, int64_t now_ns) {
  const int64_t last_ns = std::exchange(looked_ns_, now_ns);
  const bool stood_still = last_ns != 0 && now_ns - last_ns > stopped_ns_;
  const uint64_t begun = memory.header.events_begun.load();
  const uint64_t oldest = begun > kFlightEvents ? begun - kFlightEvents + 1 : 1;
  for (uint64_t number = std::max(seen_ + 1, oldest); number <= begun; ++number) {
    open_.emplace(number, 0);
  }
  seen_ = begun;
  std::vector<Overdue> overdue;
  for (auto at = open_.begin(); at != open_.end();) {
    const uint64_t number = at->first;
    int64_t& so_far_ns = at->second;
    const FlightEvent* const event = event_at(memory, number);
    const bool is_written = event == nullptr && number >= oldest;  // at this moment
    if (event != nullptr && !stood_still) {
      const int64_t until_ns = event->left_ns != 0 ? event->left_ns : now_ns;
      so_far_ns += std::max<int64_t>(until_ns - std::max(event->entered_ns, last_ns), 0);
    }
    if (event == nullptr ? !is_written : event->left_ns != 0) {
      if (event != nullptr && !stood_still) learn(*event, so_far_ns);
      told_.erase(number);
      at = open_.erase(at);
      continue;
    }
    ++at;
    if (is_written || told_.contains(number)) continue;
    const Experience& of_kind = before_[kind_of(*event)];
    const Experience& of_group = of_group_[event->group];
    if (so_far_ns <= patience_ns(of_kind, of_group)) continue;
    told_.insert(number);
    overdue.push_back({number, event->group, event->sequence, event->peer, so_far_ns,
                       telling(of_kind, of_group).longest_ns});
  }
  return overdue;
}

void Patience::forget(uint16_t group) {
  std::erase_if(before_, [group](const auto& kind) { return kind.first.first == group; });
  of_group_.erase(group);
}

std::vector<int> late_for(const std::vector<LastCall>& calls, const std::vector<int>& ranks,
                          uint64_t sequence) {
  std::vector<int> late;
  for (const int rank : ranks) {
    const auto call = std::find_if(calls.begin(), calls.end(),
                                   [rank](const LastCall& one) { return one.rank == rank; });
    const bool is_in_it = call != calls.end() && call->reached == sequence && call->inside;
    const bool came = call != calls.end() && call->reached >= sequence;
    if (!came || (is_in_it && !call->process.empty())) late.push_back(rank);
  }
  return late;
}

}  // namespace lockstep::inline internal
