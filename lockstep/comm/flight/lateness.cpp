#include "lockstep/comm/flight/lateness.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lockstep {
namespace {

/// By number of the collective.
using Arrivals = std::map<uint64_t, int64_t>;

bool is_in(const FlightRecord& record, const std::string& group) {
  return std::find(record.groups.begin(), record.groups.end(), group) != record.groups.end();
}

Arrivals arrivals_of(const FlightRecord& record, const std::string& group) {
  Arrivals arrivals;
  for (const FlightEntry& entry : record.entries) {
    if (entry.group == group && entry.sequence != 0) arrivals[entry.sequence] = entry.entered_ns;
  }
  return arrivals;
}

/// Adds each rank's arrival at collective `number`, if all have it.
void add(uint64_t number, const std::vector<Arrivals>& all, std::vector<Lateness>& ranks) {
  std::vector<int64_t> times;
  for (const Arrivals& arrivals : all) {
    const auto found = arrivals.find(number);
    if (found == arrivals.end()) return;
    times.push_back(found->second);
  }
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  for (size_t i = 0; i < times.size(); ++i) {
    // Unsigned, since recorders may hold garbage, and the difference of any two moments fits.
    const uint64_t late_ns = static_cast<uint64_t>(times[i]) - static_cast<uint64_t>(*first);
    const double late_ms = static_cast<double>(late_ns) / 1e6;
    ++ranks[i].collectives;
    ranks[i].mean_ms += late_ms;  // the sum, until all are there
    ranks[i].most_ms = std::max(ranks[i].most_ms, late_ms);
  }
  ++ranks[static_cast<size_t>(last - times.begin())].last;
}

}  // namespace

std::vector<Lateness> lateness_in(const std::vector<FlightRecord>& records,
                                  const std::string& group) {
  std::vector<Lateness> ranks;
  std::vector<Arrivals> all;
  for (const FlightRecord& record : records) {
    if (!is_in(record, group)) continue;
    ranks.push_back({});
    ranks.back().rank = record.rank;
    all.push_back(arrivals_of(record, group));
  }
  if (all.empty()) return ranks;
  for (const auto& [number, time] : all.front()) add(number, all, ranks);
  for (Lateness& rank : ranks) {
    if (rank.collectives > 0) rank.mean_ms /= static_cast<double>(rank.collectives);
  }
  return ranks;
}

int slowest(const std::vector<Lateness>& arrivals) {
  for (const Lateness& rank : arrivals) {
    if (2 * rank.last > rank.collectives && rank.mean_ms >= 0.1) return rank.rank;
  }
  return -1;
}

std::string lateness_table(const std::vector<Lateness>& arrivals) {
  if (arrivals.size() < 2 || arrivals.front().collectives < kFewestArrivals) return "";
  std::string text =
      fmt::format("  arrivals at the last {} collectives\n  {:>5}  {:>10}  {:>10}  {:>8}\n",
                  arrivals.front().collectives, "rank", "mean late", "most late", "last in");
  const int named = slowest(arrivals);
  for (const Lateness& rank : arrivals) {
    text += fmt::format("  {:>5}  {:>7.1f} ms  {:>7.1f} ms  {:>6} %{}\n", rank.rank, rank.mean_ms,
                        rank.most_ms, 100 * rank.last / rank.collectives,
                        rank.rank == named ? "  <- slowest" : "");
  }
  return text;
}

}  // namespace lockstep
