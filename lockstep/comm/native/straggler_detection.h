#pragma once
// Straggler detection by all ranks of a group over several hosts.
//
// The rank that a rank waits for may itself wait. So the first rank that times out begins the
// detection in the group's store. It writes the ranks for which it waits. So does every waiting
// rank as soon as it sees that. A rank that has not written after a moment does not wait: it is
// late. A rank that writes the group's error raises the same alarm, so no rank waits in a
// collective of a group that has ended.
//
//   waiting --time is over--------------> writes awaited ranks --group error there-> ends with it
//   waiting --alarm(): another began it-> writes awaited ranks --kGrace is over----> names the late

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/error.h"

namespace lockstep::inline internal {

/// One rank's part in the detection. For the thread of the collectives.
class StragglerDetection {
 public:
  explicit StragglerDetection(const GroupSpec& spec);
  StragglerDetection(const StragglerDetection&) = delete;
  StragglerDetection& operator=(const StragglerDetection&) = delete;

  /// A collective begins: its waiting time is counted from now.
  void start_waiting();

  /// For waiting ranks: true if another rank has begun it or has ended the group, so that the wait
  /// must end as if it had timed out. It queries the store once in every look_pause(), first
  /// after one such pause, so it may be called at any rate. Once in every kLookPause is enough.
  const std::function<bool()>& alarm() const { return alarm_; }

  /// This rank timed out with `error` while it waited for `awaited`, as far as it knows. Returns
  /// the error that names the culprit. Returns `error` if the culprit cannot be identified, or
  /// another rank has written a group error meanwhile. Takes at most kGrace (or three looks of
  /// alarm(), if that is more) and some round trips to the store. It takes kTurn more if the rank
  /// with the first turn has died. One rank reads all answers: size * (1 + awaited.size()) numbers,
  /// and as many errors of up to half a KiB. It reports the error of a rank that waited for the
  /// culprit. Errors: the store's.
  Error name_the_late(const Error& error, const std::vector<int>& awaited);

 private:
  static constexpr std::chrono::milliseconds kGrace{300};
  /// Time in which the first rank whose kGrace is over must report.
  static constexpr std::chrono::seconds kTurn{2};
  /// How long the store may take to answer.
  static constexpr std::chrono::seconds kStoreLimit{5};
  /// The same for alarm(), which delays the waiting rank. kPause: the pause after the store did not
  /// answer in time.
  static constexpr std::chrono::milliseconds kLookLimit{500};
  static constexpr std::chrono::seconds kPause{5};

  using Answers = std::vector<std::optional<std::vector<int>>>;  // by rank
  struct Said {
    Answers awaited;
    std::vector<std::string> texts;  // by rank: the error with which its wait ended
  };

  bool has_begun();
  bool is_told_within(std::chrono::milliseconds limit) const;
  bool has_turn() const;
  Said answers() const;
  int witness_of(const std::vector<int>& late, const Answers& all) const;
  Error name_broken_links(const Error& error, const Answers& all) const;

  const GroupSpec& spec_;
  const std::string begun_key_;
  const std::string waited_;  // the prefix of the answers' keys
  const std::chrono::milliseconds look_;
  const std::function<bool()> alarm_ = [this] { return has_begun(); };
  std::chrono::steady_clock::time_point next_look_{};
  std::chrono::steady_clock::time_point pause_end_{};
};

// Finds the late ranks, or the broken connection, from the ranks that each rank awaits. Pure
// functions.

/// `awaited[r]`: the ranks from which rank r still expects data; nothing: rank r gave no answer, so
/// it is elsewhere or frozen. Returns the awaited ranks without an answer; if no rank awaits one of
/// them, all ranks without an answer.
std::vector<int> late_ranks(const std::vector<std::optional<std::vector<int>>>& awaited);

/// No data passes between `rank` and any of `from`. Without any: -1.
struct BrokenLinks {
  int rank = -1;
  std::vector<int> from;
};

/// If all ranks answer, two that wait for each other are cut off from each other. One that waits
/// alone may only wait for data that the other cannot send yet. Returns the rank with the most such
/// peers, the lowest of several.
BrokenLinks most_broken_links(const std::vector<std::optional<std::vector<int>>>& awaited);

/// For the store: "0 2".
std::string encode_ranks(const std::vector<int>& ranks);
std::vector<int> decode_ranks(const std::string& text);

}  // namespace lockstep::inline internal
