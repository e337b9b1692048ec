#include "lockstep/world/places.h"

#include <fmt/format.h>

#include <chrono>
#include <map>

#include "lockstep/base/env.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/error.h"
#include "lockstep/store/missing_ranks.h"
#include "lockstep/world/reported_wait.h"

namespace lockstep::inline internal {
namespace {

/// After this time rank 0 logs for whom it waits, once.
constexpr auto kLogsWaitAfter = std::chrono::seconds(5);

constexpr const char* kReports = "places/report/";

std::string report_of(int rank) {
  return fmt::format("{}{}", kReports, rank);
}

/// Whether the launcher's local ranks of these ranks are 0, 1, 2, ... in some order.
bool is_numbered(const std::vector<PlaceReport>& reports, const std::vector<int>& ranks) {
  std::vector<bool> seen(ranks.size(), false);
  for (const int rank : ranks) {
    const int local = reports[static_cast<size_t>(rank)].local_rank;
    if (local < 0 || local >= static_cast<int>(ranks.size()) || seen[static_cast<size_t>(local)])
      return false;
    seen[static_cast<size_t>(local)] = true;
  }
  return true;
}

std::string place_key(int rank) {
  return fmt::format("places/of/{}", rank);
}

/// "LOCAL_RANK HOST_ID"
PlaceReport parse_report(const std::string& text) {
  const size_t blank = text.find(' ');
  PlaceReport report;
  report.local_rank = static_cast<int>(parse_int(std::string_view(text).substr(0, blank),
                                                 kUnknownNumber, 1 << 24, "place of a rank"));
  report.host_id = blank == std::string::npos ? "" : text.substr(blank + 1);
  return report;
}

RankPlace parse_place(const std::string& text) {
  const auto parts = split(text, ' ');
  if (parts.size() != 4) throw Error(ErrorCode::kCorrupt, "place of a rank: '" + text + "'");
  const auto number = [&](size_t i) {
    return static_cast<int>(parse_int(parts[i], 0, 1 << 24, "place of a rank"));
  };
  return {number(0), number(1), number(2), number(3)};
}

/// None also if the store does not answer: a caller that has another error keeps that.
std::vector<int> ranks_without_report(Store& store, int size) {
  try {
    return missing_ranks(store, kReports, size, Deadline::after(std::chrono::seconds(2)));
  } catch (const Error&) {
    return {};
  }
}

void await_reports(Store& store, int size, Deadline deadline) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < size; ++rank) keys.push_back(report_of(rank));
  wait_and_report(
      deadline, kLogsWaitAfter, [&](Deadline until) { store.wait(keys, until); },
      [&](const Error& /*late*/) {
        const auto absent = ranks_without_report(store, size);
        if (!absent.empty()) log_info(fmt::format("waits for {} to come", rank_words(absent)));
      });
}

/// Rank 0 reads all reports, and writes each rank's place.
void publish_places(Store& store, int size, Deadline deadline) {
  await_reports(store, size, deadline);
  std::vector<PlaceReport> reports;
  for (int rank = 0; rank < size; ++rank)
    reports.push_back(parse_report(store.get(report_of(rank), deadline)));
  const auto places = assign_places(reports);
  for (int rank = 0; rank < size; ++rank) {
    const RankPlace& place = places[static_cast<size_t>(rank)];
    store.set(place_key(rank),
              fmt::format("{} {} {} {}", place.local_rank, place.local_size, place.node_rank,
                          place.num_nodes),
              deadline);
  }
}

RankPlace agreed_place(Store& store, const std::string& host_id, const Identity& id,
                       Deadline deadline) {
  store.set(report_of(id.rank), fmt::format("{} {}", id.local_rank, host_id), deadline);
  try {
    if (id.rank == 0) publish_places(store, id.size, deadline);
    return parse_place(store.get(place_key(id.rank), deadline));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    const auto absent = ranks_without_report(store, id.size);
    if (absent.empty()) throw;
    throw Error(ErrorCode::kTimeout,
                fmt::format("joining the job, on rank {}: {} of {} did not come in time", id.rank,
                            rank_words(absent), id.size));
  }
}

}  // namespace

std::vector<RankPlace> assign_places(const std::vector<PlaceReport>& reports) {
  std::vector<std::vector<int>> nodes;
  std::map<std::string, size_t> node_of;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    const auto [entry, is_new] = node_of.emplace(reports[rank].host_id, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[entry->second].push_back(static_cast<int>(rank));
  }
  std::vector<RankPlace> places(reports.size());
  for (size_t node = 0; node < nodes.size(); ++node) {
    const bool numbered = is_numbered(reports, nodes[node]);
    for (size_t i = 0; i < nodes[node].size(); ++i) {
      const auto rank = static_cast<size_t>(nodes[node][i]);
      places[rank] = {numbered ? reports[rank].local_rank : static_cast<int>(i),
                      static_cast<int>(nodes[node].size()), static_cast<int>(node),
                      static_cast<int>(nodes.size())};
    }
  }
  return places;
}

bool has_unknown_place(const Identity& id) {
  return id.local_rank == kUnknownNumber || id.local_size == kUnknownNumber ||
         id.node_rank == kUnknownNumber || id.num_nodes == kUnknownNumber;
}

void find_place(Store& store, const std::string& host_id, Identity* id, Deadline deadline) {
  const RankPlace place = agreed_place(store, host_id, *id, deadline);
  id->local_rank = place.local_rank;
  id->local_size = place.local_size;
  id->node_rank = place.node_rank;
  id->num_nodes = place.num_nodes;
}

}  // namespace lockstep::inline internal
