#include "lockstep/comm/flight/held_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/base/text.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {
namespace {

using nlohmann::json;

constexpr size_t kMostHolds = 8;  // that are listed

bool is_among(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// The known calls of all ranks.
class Table {
 public:
  Table(const std::vector<RankCalls>& all, const std::vector<int>& ranks) : all_(all) {
    for (const int rank : ranks) {
      if (find(rank) == nullptr) silent_.push_back(rank);
    }
  }

  const RankCalls* find(int rank) const {
    const auto found = std::find_if(all_.begin(), all_.end(),
                                    [rank](const RankCalls& calls) { return calls.rank == rank; });
    return found == all_.end() ? nullptr : &*found;
  }

  /// The ranks that a call waits for: the peer, or the ranks that have not, or may not have, begun
  /// the collective. If all have begun it: the ranks that cannot continue it.
  std::vector<int> late_for(const OpenCall& call) const {
    std::vector<int> behind;
    std::vector<int> still;
    int known = 0;
    int size = 0;
    for (const RankCalls& calls : all_) {
      const auto membership = calls.groups.find(call.group);
      if (membership == calls.groups.end()) continue;
      const auto& [rank, group_size, reached] = membership->second;
      if (call.sequence == 0 && rank == call.peer) return {calls.rank};
      ++known;
      size = group_size;
      if (reached < call.sequence) behind.push_back(calls.rank);
      if (!calls.runs) still.push_back(calls.rank);
    }
    if (behind.empty() && known < size) return silent_;
    return behind.empty() && call.sequence != 0 ? still : behind;
  }

 private:
  const std::vector<RankCalls>& all_;
  std::vector<int> silent_;
};

/// Follows waits from rank to rank, visiting each once.
class Trail {
 public:
  Trail(const Table& table, int64_t since_ns) : table_(table), since_ns_(since_ns) {}

  void visit(int rank) {
    if (is_among(seen_, rank)) return;
    seen_.push_back(rank);
    const auto waits = waits_of(rank);
    if (waits.empty()) roots.push_back(rank);
    for (const Hold& hold : holds_of(rank, waits)) {
      path.push_back(hold);
      visit(hold.by);
    }
  }

  std::vector<int> roots;
  std::vector<Hold> path;

 private:
  std::vector<OpenCall> waits_of(int rank) const {
    const RankCalls* const calls = table_.find(rank);
    if (calls == nullptr || !calls->runs) return {};
    std::vector<OpenCall> waits;
    bool must_wait = false;
    for (const OpenCall& call : calls->open) {
      if (call.left_ns != 0 && call.left_ns < since_ns_) continue;
      waits.push_back(call);
      must_wait |= call.waits;
    }
    return calls->computes && !must_wait ? std::vector<OpenCall>() : waits;
  }

  std::vector<Hold> holds_of(int rank, const std::vector<OpenCall>& waits) const {
    std::vector<Hold> holds;
    for (const OpenCall& call : waits) {
      for (const int by : table_.late_for(call)) {
        if (by != rank) holds.push_back({rank, call.what + " of group " + call.group, by});
      }
    }
    return holds;
  }

  const Table& table_;
  const int64_t since_ns_;
  std::vector<int> seen_;
};

}  // namespace

RankCalls calls_of(const FlightRecord& record, const std::string& state) {
  RankCalls calls;
  calls.rank = record.rank;
  calls.runs = state != "stopped" && state != "dead";
  calls.computes = state == "running";
  for (const auto& [group, place] : record.memberships)
    calls.groups[group] = {place.rank, place.size, 0};
  int64_t last_begun_ns = 0;
  for (const FlightEntry& entry : record.entries)
    last_begun_ns = std::max(last_begun_ns, entry.entered_ns);
  for (const FlightEntry& entry : record.entries) {
    const auto membership = calls.groups.find(entry.group);
    if (membership == calls.groups.end()) continue;
    membership->second.reached = std::max(membership->second.reached, entry.sequence);
    const bool goes_on = entry.went_on && (entry.sequence != 0 || entry.left_ns < last_begun_ns);
    if (entry.left_ns != 0 && (!entry.failed || goes_on)) continue;
    calls.open.push_back({entry.group, entry.sequence, entry.peer, to_string(entry),
                          entry.entered_ns, entry.left_ns, entry.waits});
  }
  return calls;
}

HeldUp held_up(const std::vector<RankCalls>& all, const std::vector<int>& ranks, int rank,
               const std::string& group) {
  HeldUp found;
  const Table table(all, ranks);
  const RankCalls* const own = table.find(rank);
  if (own == nullptr) return found;
  // Of several calls, the last collective: a recv may have been posted for later.
  const OpenCall* wait = nullptr;
  for (const OpenCall& call : own->open) {
    if (call.group == group && (wait == nullptr || call.sequence >= wait->sequence)) wait = &call;
  }
  if (wait == nullptr) return found;
  found.awaited = table.late_for(*wait);
  std::erase(found.awaited, rank);
  Trail trail(table, wait->entered_ns);
  for (const int awaited : found.awaited) trail.visit(awaited);
  found.roots = std::move(trail.roots);
  found.path = std::move(trail.path);
  return found;
}

HeldUp held_up_by(const std::vector<RankCalls>& all, const std::vector<int>& ranks, int awaited,
                  int64_t since_ns) {
  const Table table(all, ranks);
  Trail trail(table, since_ns);
  trail.visit(awaited);
  return {{awaited}, std::move(trail.roots), std::move(trail.path)};
}

HeldUp held_up_in_collective(const std::vector<RankCalls>& all, const std::vector<int>& ranks,
                             const std::string& group) {
  uint64_t last = 0;
  int waiting = -1;
  for (const RankCalls& calls : all) {
    for (const OpenCall& call : calls.open) {
      if (call.group != group || call.sequence <= last) continue;
      last = call.sequence;
      waiting = calls.rank;
    }
  }
  return waiting < 0 ? HeldUp{} : held_up(all, ranks, waiting, group);
}

std::string to_string(const HeldUp& found) {
  if (found.path.empty()) return "";
  std::vector<int> ranks;
  for (const Hold& hold : found.path) ranks.push_back(hold.rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string text = found.roots.empty() ? rank_words(ranks) + " wait for each other"
                                         : fmt::format("{} {} up {}", rank_words(found.roots),
                                                       found.roots.size() == 1 ? "holds" : "hold",
                                                       rank_words(ranks));
  for (size_t i = 0; i < std::min(found.path.size(), kMostHolds); ++i) {
    const Hold& hold = found.path[i];
    text += fmt::format("{} rank {} waits in {} for rank {}", i == 0 ? ":" : ";", hold.rank,
                        hold.call, hold.by);
  }
  if (found.path.size() > kMostHolds)
    text += fmt::format("; and {} more", found.path.size() - kMostHolds);
  return text;
}

std::string encode_rank_calls(const std::vector<RankCalls>& calls) {
  json list = json::array();
  for (const RankCalls& one : calls) {
    json groups = json::array();
    for (const auto& [name, membership] : one.groups)
      groups.push_back({name, membership.rank, membership.size, membership.reached});
    json open = json::array();
    for (const OpenCall& call : one.open)
      open.push_back({call.group, call.sequence, call.peer, call.what, call.entered_ns,
                      call.left_ns, call.waits});
    list.push_back({one.rank, one.runs, one.computes, groups, open});
  }
  return list.dump();
}

std::vector<RankCalls> decode_rank_calls(const std::string& text) {
  try {
    std::vector<RankCalls> calls;
    for (const json& item : json::parse(text)) {
      RankCalls one{item.at(0).get<int>(), item.at(1).get<bool>(), item.at(2).get<bool>(), {}, {}};
      for (const json& group : item.at(3))
        one.groups[group.at(0).get<std::string>()] = {
            group.at(1).get<int>(), group.at(2).get<int>(), group.at(3).get<uint64_t>()};
      for (const json& call : item.at(4)) {
        one.open.push_back({call.at(0).get<std::string>(), call.at(1).get<uint64_t>(),
                            call.at(2).get<int>(), call.at(3).get<std::string>(),
                            call.at(4).get<int64_t>(), call.at(5).get<int64_t>(),
                            call.at(6).get<bool>()});
      }
      calls.push_back(std::move(one));
    }
    return calls;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kCorrupt, std::string("open calls of a host's ranks: ") + error.what());
  }
}

}  // namespace lockstep::inline internal
