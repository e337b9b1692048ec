#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/text.h"
#include "lockstep/comm/flight/lateness.h"
#include "lockstep/comm/flight/record.h"

namespace lockstep::inline internal {
namespace {

/// One line of a group's table.
struct Line {
  const FlightRecord* rank = nullptr;
  const FlightEntry* last = nullptr;  ///< Last collective in the group, if any.
};

/// A group's ranks.
struct Group {
  std::vector<Line> lines;
  std::map<uint64_t, int64_t> entered_ns;  ///< By collective: when its first rank entered.
};

/// Recorders are read one after the other, while ranks continue. A rank outside a call counts as
/// behind only if the call began this long before the first reading.
constexpr int64_t kBehindNs = 1'000'000'000;

std::string what(const FlightEntry* entry) {
  return entry == nullptr ? "nothing yet" : to_string(*entry);
}

std::string site(const FlightEntry* entry) {
  return entry == nullptr ? "" : entry->site;
}

std::string seconds(int64_t ns) {
  return fmt::format("{:.1f} s", static_cast<double>(std::max<int64_t>(ns, 0)) / 1e9);
}

bool ended_well(const FlightRecord& rank) {
  return !rank.alive && rank.exit_code == 0;
}

std::string state(const Line& line, int64_t now_ns) {
  const FlightEntry* entry = line.last;
  if (entry == nullptr) return ended_well(*line.rank) ? "ended" : "";
  if (entry->left_ns == 0) return "inside for " + seconds(now_ns - entry->entered_ns);
  return (entry->failed ? "failed " : "done ") + seconds(now_ns - entry->left_ns) + " ago" +
         (ended_well(*line.rank) ? ", ended" : "");
}

/// The death of a rank; "" if it lives, or has ended well.
std::string death(const FlightRecord& rank) {
  if (rank.alive || ended_well(rank)) return "";
  return rank.exit_code > 0 ? fmt::format("ended with exit code {}", rank.exit_code) : "dead";
}

/// The call that most ranks made as their group's number `sequence`.
std::string usual_call(const std::vector<Line>& lines, uint64_t sequence) {
  std::map<std::string, int> votes;
  for (const Line& line : lines) {
    if (line.last != nullptr && line.last->sequence == sequence) ++votes[what(line.last)];
  }
  const auto most = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? "" : most->first;
}

/// True if the rank is late for the collective after number `own`.
bool lags(const Line& line, uint64_t own, const Group& group, int64_t now_ns) {
  const auto next = group.entered_ns.upper_bound(own);
  if (next == group.entered_ns.end()) return false;
  return !line.rank->alive || now_ns - next->second >= kBehindNs;
}

/// The difference of this rank from the others; "" if there is none.
std::string odd(const Line& line, const Group& group, int64_t now_ns) {
  const uint64_t furthest = group.entered_ns.empty() ? 0 : group.entered_ns.rbegin()->first;
  const uint64_t own = line.last == nullptr ? 0 : line.last->sequence;
  const std::string& process = line.rank->process;
  std::string text = death(*line.rank);
  if (lags(line, own, group, now_ns)) {
    text += fmt::format("{}{} behind", text.empty() ? "" : ", ", furthest - own);
  } else if (own == furthest && line.last != nullptr &&
             what(line.last) != usual_call(group.lines, furthest)) {
    text += fmt::format("{}another call than most", text.empty() ? "" : ", ");
  }
  const bool told = !text.empty() || process == "stopped";
  if (line.rank->alive && told && !process.empty()) text += (text.empty() ? "" : ", ") + process;
  return text;
}

Group group_of(const std::vector<FlightRecord>& records, const std::string& group) {
  Group all;
  for (const FlightRecord& record : records) {
    if (std::find(record.groups.begin(), record.groups.end(), group) == record.groups.end()) {
      continue;
    }
    Line line{&record, nullptr};
    for (const FlightEntry& entry : record.entries) {
      if (entry.group != group || entry.sequence == 0) continue;
      line.last = &entry;
      const auto [first, is_new] = all.entered_ns.emplace(entry.sequence, entry.entered_ns);
      if (!is_new) first->second = std::min(first->second, entry.entered_ns);
    }
    all.lines.push_back(line);
  }
  return all;
}

std::string group_table(const std::string& group, const Group& all, int64_t now_ns) {
  const auto& lines = all.lines;
  size_t width = std::string_view("last operation").size();
  size_t site_width = std::string_view("called at").size();
  for (const Line& line : lines) {
    width = std::max(width, what(line.last).size());
    site_width = std::max(site_width, site(line.last).size());
  }
  std::string text = fmt::format("group {}\n  {:>5}  {:>8}  {:<{}}  {:<{}}  state\n", group, "rank",
                                 "pid", "last operation", width, "called at", site_width);
  for (const Line& line : lines) {
    const std::string note = odd(line, all, now_ns);
    std::string row =
        fmt::format("  {:>5}  {:>8}  {:<{}}  {:<{}}  {:<20}", line.rank->rank, line.rank->pid,
                    what(line.last), width, site(line.last), site_width, state(line, now_ns));
    if (!note.empty()) row += "  <- " + note;
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

std::vector<std::string> groups_of(const std::vector<FlightRecord>& records) {
  std::vector<std::string> groups;
  for (const FlightRecord& record : records) {
    for (const std::string& group : record.groups) {
      if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
    }
  }
  return groups;
}

/// Transfers in progress on some rank; they are outside the group's order.
std::string open_transfers(const std::vector<FlightRecord>& records, int64_t now_ns) {
  std::string text;
  for (const FlightRecord& record : records) {
    for (const FlightEntry& entry : record.entries) {
      if (entry.sequence != 0 || entry.left_ns != 0) continue;
      text += fmt::format("  rank {}: {}{}{}, inside for {}\n", record.rank, to_string(entry),
                          entry.site.empty() ? "" : " at ", entry.site,
                          seconds(now_ns - entry.entered_ns));
    }
  }
  return text.empty() ? text : "transfers under way (ranks of their groups)\n" + text;
}

}  // namespace

std::string to_string(const FlightEntry& entry) {
  std::string text = entry.call;
  if (entry.sequence != 0) {
    text += fmt::format(" #{}", entry.sequence);
  } else {
    text += fmt::format(" {} {}", entry.call == "send" ? "to" : "from", entry.peer);
  }
  if (entry.count == 0) return text;
  return text +
         fmt::format(" ({}, {})", entry.dtype, format_bytes(std::max<int64_t>(entry.bytes, 0)));
}

std::vector<int> odd_ranks(const std::vector<FlightRecord>& records, int64_t now_ns) {
  std::set<int> ranks;
  for (const std::string& group : groups_of(records)) {
    const auto all = group_of(records, group);
    for (const Line& line : all.lines) {
      if (line.rank->alive && !odd(line, all, now_ns).empty()) ranks.insert(line.rank->rank);
    }
  }
  return {ranks.begin(), ranks.end()};
}

std::string flight_table(std::vector<FlightRecord> records, int64_t now_ns) {
  std::sort(records.begin(), records.end(),
            [](const FlightRecord& a, const FlightRecord& b) { return a.rank < b.rank; });
  std::set<int> present;
  int size = 0;
  for (const FlightRecord& record : records) {
    present.insert(record.rank);
    size = std::max(size, record.size);
  }
  std::string text;
  for (const std::string& group : groups_of(records)) {
    text += group_table(group, group_of(records, group), now_ns);
    text += lateness_table(arrivals_in(records, group), now_ns);
  }
  for (const FlightRecord& record : records) {
    if (record.stack.empty()) continue;
    text += fmt::format("stack of rank {}: {}\n", record.rank, record.stack);
  }
  text += open_transfers(records, now_ns);
  std::vector<int> missing;
  for (int rank = 0; rank < std::min(size, 1 << 20); ++rank) {
    if (present.count(rank) == 0) missing.push_back(rank);
  }
  if (!missing.empty()) text += fmt::format("no record of {}\n", rank_words(missing));
  return text;
}

}  // namespace lockstep::inline internal
