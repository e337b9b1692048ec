#include "lockstep/comm/flight/lateness.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

namespace lockstep::inline internal {
namespace {

/// Parts of a run that are examined one by one, and the least number of collectives in each.
constexpr size_t kParts = 12;
constexpr size_t kFewestInAPart = 8;
constexpr double kLeastExcessMs = 0.1;

struct Visit {
  int64_t entered_ns = 0;
  double own_ms = 0;  ///< Since it left the previous one.
};

/// By number of the collective.
using Visits = std::map<uint64_t, Visit>;

bool is_in(const FlightRecord& record, const std::string& group) {
  return std::find(record.groups.begin(), record.groups.end(), group) != record.groups.end();
}

/// Unsigned, because recorders may hold garbage, and the difference of any two moments fits.
double ms_between(int64_t begin_ns, int64_t end_ns) {
  return static_cast<double>(static_cast<uint64_t>(end_ns) - static_cast<uint64_t>(begin_ns)) / 1e6;
}

Visits visits_of(const FlightRecord& record, const std::string& group) {
  Visits visits;
  int64_t left_ns = 0;
  for (const FlightEntry& entry : record.entries) {
    if (entry.group != group || entry.sequence == 0) continue;
    const bool after = left_ns != 0 && entry.entered_ns > left_ns;
    visits[entry.sequence] = {entry.entered_ns, after ? ms_between(left_ns, entry.entered_ns) : 0};
    left_ns = entry.left_ns;
  }
  return visits;
}

/// The collectives that all ranks have, in order; for each, the ranks' visits.
std::vector<std::vector<Visit>> common_visits(const std::vector<Visits>& all) {
  std::vector<std::vector<Visit>> common;
  for (const auto& [number, first] : all.front()) {
    std::vector<Visit> visits;
    for (const Visits& each : all) {
      const auto found = each.find(number);
      if (found == each.end()) break;
      visits.push_back(found->second);
    }
    if (visits.size() == all.size()) common.push_back(std::move(visits));
  }
  return common;
}

void add(const std::vector<Visit>& visits, std::vector<Lateness>& ranks) {
  const auto earlier = [](const Visit& a, const Visit& b) { return a.entered_ns < b.entered_ns; };
  const auto [first, last] = std::minmax_element(visits.begin(), visits.end(), earlier);
  for (size_t i = 0; i < visits.size(); ++i) {
    const double late_ms = ms_between(first->entered_ns, visits[i].entered_ns);
    ++ranks[i].collectives;
    ranks[i].mean_ms += late_ms;  // a sum until the loop ends
    ranks[i].own_ms += visits[i].own_ms;
    ranks[i].most_ms = std::max(ranks[i].most_ms, late_ms);
  }
  ++ranks[static_cast<size_t>(last - visits.begin())].last;
}

/// Mean own times per collective, part by part; the first collective has no predecessor.
std::vector<std::vector<double>> parts_of(const std::vector<std::vector<Visit>>& common) {
  const size_t parts = std::min(kParts, (common.size() - 1) / kFewestInAPart);
  std::vector<std::vector<double>> own;
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = 1 + part * (common.size() - 1) / parts;
    const size_t end = 1 + (part + 1) * (common.size() - 1) / parts;
    auto& means = own.emplace_back(common.front().size());
    for (size_t i = begin; i < end; ++i) {
      for (size_t rank = 0; rank < means.size(); ++rank) {
        means[rank] += common[i][rank].own_ms / static_cast<double>(end - begin);
      }
    }
  }
  return own;
}

/// The slow rank of one part; -1: none.
int slow_in(const std::vector<double>& own_ms) {
  if (own_ms.size() < 2) return -1;
  const auto most = std::max_element(own_ms.begin(), own_ms.end());
  std::vector<double> others(own_ms.begin(), most);
  others.insert(others.end(), most + 1, own_ms.end());
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  const bool slow = *most >= kSlowFactor * *middle && *most - *middle >= kLeastExcessMs;
  return slow ? static_cast<int>(most - own_ms.begin()) : -1;
}

}  // namespace

int slow_in_a_row(const std::vector<std::vector<double>>& own_ms_of_parts) {
  if (own_ms_of_parts.size() < kSlowParts) return -1;
  const int last = slow_in(own_ms_of_parts.back());
  for (size_t i = own_ms_of_parts.size() - kSlowParts; i < own_ms_of_parts.size(); ++i) {
    if (slow_in(own_ms_of_parts[i]) != last) return -1;
  }
  return last;
}

Arrivals arrivals_in(const std::vector<FlightRecord>& records, const std::string& group) {
  Arrivals arrivals;
  std::vector<Visits> all;
  for (const FlightRecord& record : records) {
    if (!is_in(record, group)) continue;
    arrivals.ranks.push_back({});
    arrivals.ranks.back().rank = record.rank;
    all.push_back(visits_of(record, group));
  }
  if (all.empty()) return arrivals;
  const auto common = common_visits(all);
  if (common.empty()) return arrivals;
  for (const auto& visits : common) add(visits, arrivals.ranks);
  for (Lateness& rank : arrivals.ranks) {
    rank.mean_ms /= static_cast<double>(rank.collectives);
    rank.own_ms /= static_cast<double>(rank.collectives);
  }
  const auto first_of = [](const std::vector<Visit>& visits) {
    int64_t first = std::numeric_limits<int64_t>::max();
    for (const Visit& visit : visits) first = std::min(first, visit.entered_ns);
    return first;
  };
  arrivals.begin_ns = first_of(common.front());
  arrivals.end_ns = first_of(common.back());
  const int slow = slow_in_a_row(parts_of(common));
  if (slow >= 0) arrivals.slowest = arrivals.ranks[static_cast<size_t>(slow)].rank;
  return arrivals;
}

std::string lateness_table(const Arrivals& arrivals, int64_t now_ns) {
  const auto& ranks = arrivals.ranks;
  if (ranks.size() < 2 || ranks.front().collectives < kFewestArrivals) return "";
  const auto seconds = [](int64_t begin_ns, int64_t end_ns) {
    return end_ns > begin_ns ? ms_between(begin_ns, end_ns) / 1e3 : 0.0;
  };
  std::string text = fmt::format(
      "  arrivals at the last {} collectives, in {:.1f} s until {:.1f} s ago\n"
      "  {:>5}  {:>10}  {:>10}  {:>8}  {:>10}\n",
      ranks.front().collectives, seconds(arrivals.begin_ns, arrivals.end_ns),
      seconds(arrivals.end_ns, now_ns), "rank", "mean late", "most late", "last in", "own time");
  for (const Lateness& rank : ranks) {
    text += fmt::format("  {:>5}  {:>7.1f} ms  {:>7.1f} ms  {:>6} %  {:>7.1f} ms{}\n", rank.rank,
                        rank.mean_ms, rank.most_ms, 100 * rank.last / rank.collectives, rank.own_ms,
                        rank.rank == arrivals.slowest ? "  <- slowest" : "");
  }
  return text;
}

}  // namespace lockstep::inline internal
