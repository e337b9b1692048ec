#include "lockstep/comm/native/straggler_detection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "lockstep/base/literals.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/group_error.h"
#include "lockstep/comm/look_pause.h"
#include "lockstep/comm/rank_answers.h"

namespace lockstep::inline internal {
namespace {

/// Length of an error's text in the store.
constexpr size_t kMostText = 512;
constexpr char kBeforeText = '\n';

using Awaited = std::vector<std::optional<std::vector<int>>>;

/// For each rank, whether it awaits each other one.
std::vector<std::vector<bool>> table_of(const Awaited& awaited) {
  const size_t size = awaited.size();
  std::vector<std::vector<bool>> table(size, std::vector<bool>(size));
  for (size_t rank = 0; rank < size; ++rank) {
    if (!awaited[rank]) continue;
    for (const int other : *awaited[rank]) {
      if (const auto at = static_cast<size_t>(other); at < size) table[rank][at] = true;
    }
  }
  return table;
}

}  // namespace

StragglerDetection::StragglerDetection(const GroupSpec& spec)
    : spec_(spec),
      begun_key_(alarm_key(spec)),
      waited_(spec.name + "/waited/"),
      look_(look_pause(static_cast<size_t>(spec.size))) {}

void StragglerDetection::start_waiting() {
  next_look_ = std::chrono::steady_clock::now() + look_;
}

bool StragglerDetection::has_begun() {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  if (now < std::max(next_look_, pause_end_)) return false;
  next_look_ = now + look_;
  try {
    return spec_.store->check(std::span(&begun_key_, 1), Deadline::after(kLookLimit));
  } catch (const Error& error) {
    log_debug(fmt::format("{}: no detection of late ranks of group '{}' now: {}",
                          spec_.rank_name(spec_.rank), spec_.name, error.what()));
    const bool comes_back = error.code() == ErrorCode::kTimeout;
    pause_end_ = comes_back ? Clock::now() + kPause : Clock::time_point::max();
    return false;
  }
}

Error StragglerDetection::name_the_late(const Error& error, const std::vector<int>& awaited) {
  if (is_told_within(0ms)) return error;  // another rank has ended the group, and raised the alarm
  Store& store = *spec_.store;
  const auto text = std::string(error.what()).substr(0, kMostText);
  store.set(waited_ + std::to_string(spec_.rank), encode_ranks(awaited) + kBeforeText + text,
            Deadline::after(kStoreLimit));
  store.set(begun_key_, "", Deadline::after(kStoreLimit));
  // If another rank is faster, its error counts, whatever the result here. One rank at a time
  // reads the answers: all answers for every rank would overload the store of a large group.
  if (is_told_within(std::max(kGrace, 3 * look_))) return error;
  if (!has_turn() && is_told_within(kTurn)) return error;
  const Said said = answers();
  const auto late = late_ranks(said.awaited);
  if (late.empty()) return name_broken_links(error, said.awaited);
  const int witness = witness_of(late, said.awaited);
  return Error(
      ErrorCode::kTimeout,
      fmt::format("{} did not come in time ({} says: {})", spec_.rank_names(late),
                  spec_.rank_name(witness),
                  witness == spec_.rank ? error.what() : said.texts[static_cast<size_t>(witness)]));
}

/// A rank that waited for a late one. Its error may contain more, such as a refused connection and
/// the reason.
int StragglerDetection::witness_of(const std::vector<int>& late, const Answers& all) const {
  const auto waited = [&](int rank) {
    const auto& awaited = all[static_cast<size_t>(rank)];
    return awaited && std::find_first_of(awaited->begin(), awaited->end(), late.begin(),
                                         late.end()) != awaited->end();
  };
  if (waited(spec_.rank)) return spec_.rank;
  for (int rank = 0; rank < spec_.size; ++rank) {
    if (waited(rank)) return rank;
  }
  return spec_.rank;
}

bool StragglerDetection::is_told_within(std::chrono::milliseconds limit) const {
  const auto key = group_error_key(spec_);
  return exist_within(*spec_.store, std::span(&key, 1), Deadline::after(limit));
}

bool StragglerDetection::has_turn() const {
  const auto by = begun_key_ + "/by";
  return spec_.store->compare_set(by, std::nullopt, "", Deadline::after(kStoreLimit)).swapped;
}

StragglerDetection::Said StragglerDetection::answers() const {
  const auto size = static_cast<size_t>(spec_.size);
  Said all{Answers(size), std::vector<std::string>(size)};
  const auto said =
      answers_by_rank(*spec_.store, waited_, spec_.size, Deadline::after(kStoreLimit));
  for (size_t rank = 0; rank < size; ++rank) {
    if (!said[rank]) continue;
    const std::string& text = *said[rank];
    const auto end = std::min(text.find(kBeforeText), text.size());
    all.awaited[rank] = decode_ranks(text.substr(0, end));
    if (end < text.size()) all.texts[rank] = text.substr(end + 1);
  }
  return all;
}

/// All ranks wait, so no rank is late. Two that wait for each other have lost their connection; the
/// rank with the most of these is named first.
Error StragglerDetection::name_broken_links(const Error& error, const Answers& all) const {
  const BrokenLinks links = most_broken_links(all);
  if (links.rank < 0) return error;
  return Error(ErrorCode::kTimeout,
               fmt::format("all ranks wait, but nothing passes between {} and {} ({} says: {})",
                           spec_.rank_name(links.rank), spec_.rank_names(links.from),
                           spec_.rank_name(spec_.rank), error.what()));
}

std::vector<int> late_ranks(const Awaited& awaited) {
  const auto table = table_of(awaited);
  std::vector<int> silent;
  std::vector<int> late;
  for (size_t rank = 0; rank < awaited.size(); ++rank) {
    if (awaited[rank]) continue;
    silent.push_back(static_cast<int>(rank));
    const bool is_awaited =
        std::any_of(table.begin(), table.end(), [rank](const auto& row) { return row[rank]; });
    if (is_awaited) late.push_back(static_cast<int>(rank));
  }
  return late.empty() ? silent : late;
}

BrokenLinks most_broken_links(const Awaited& awaited) {
  const auto table = table_of(awaited);
  BrokenLinks most;
  for (size_t rank = 0; rank < table.size(); ++rank) {
    BrokenLinks links{static_cast<int>(rank), {}};
    for (size_t other = 0; other < table.size(); ++other) {
      if (table[rank][other] && table[other][rank]) links.from.push_back(static_cast<int>(other));
    }
    if (links.from.size() > most.from.size()) most = std::move(links);
  }
  return most;
}

std::string encode_ranks(const std::vector<int>& ranks) {
  return fmt::format("{}", fmt::join(ranks, " "));
}

std::vector<int> decode_ranks(const std::string& text) {
  std::istringstream words(text);
  std::vector<int> ranks;
  for (int rank = 0; words >> rank;) ranks.push_back(rank);
  return ranks;
}

}  // namespace lockstep::inline internal
