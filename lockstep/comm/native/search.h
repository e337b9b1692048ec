#pragma once
// Finding out, all ranks together, who is late in a group over several hosts.
//
// The rank that a rank waits for may itself wait. So the first whose time is over begins a search
// in the group's store: it says for whom it waits, and so does every rank that is waiting, each as
// soon as it sees that a search is on. Who has not said it after a moment does not wait: it is
// late.
//
//   waiting --time is over--------------> says for whom it waits --verdict there--> ends with it
//   waiting --alarm(): another began it-> says for whom it waits --kGrace is over-> names the late

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/group_impl.h"
#include "lockstep/error.h"

namespace lockstep {

/// One rank's part in it. For the thread of the collectives.
class Search {
 public:
  explicit Search(const GroupSpec& spec);
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// A collective begins: how long it waits is counted from now.
  void start_waiting();

  /// For who waits: true when another rank has begun a search, so that the wait has to end as if
  /// time were over. Asks the store, but only kLook after start_waiting() and then every kLook (in
  /// large groups less often: a store then serves some 4,000 such questions a second), so it may be
  /// called as often as one likes.
  const std::function<bool()>& alarm() const { return alarm_; }

  /// How often a waiting rank should call alarm().
  static constexpr std::chrono::milliseconds kLook{100};

  /// This rank's time is over (`error`) while it waits for `awaited`, as far as it knows. Returns
  /// the error that names the culprit, or `error` if that is not to be known, or another rank has
  /// written a verdict meanwhile. Takes at most kGrace (or three looks of alarm(), if that is more)
  /// and some round trips to the store; kTurn more where the rank that was to tell has died. What
  /// all ranks say goes to one rank: size * (1 + awaited.size()) numbers, and as many errors of up
  /// to half a KiB. Of those it tells that of a rank which waited for the culprit. Errors: the
  /// store's.
  Error name_the_late(const Error& error, const std::vector<int>& awaited);

 private:
  static constexpr std::chrono::milliseconds kGrace{300};
  /// Time for the first whose kGrace is over to tell.
  static constexpr std::chrono::seconds kTurn{2};
  /// How long the store may take to answer.
  static constexpr std::chrono::seconds kStoreLimit{5};
  /// The same for alarm(), which holds up who waits; and for how long it asks a store that did not
  /// answer in time no more.
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
  Error name_the_cut(const Error& error, const Answers& all) const;

  const GroupSpec& spec_;
  const std::string begun_key_;
  const std::string waited_;  // begins the keys of the answers
  const std::chrono::milliseconds look_;
  const std::function<bool()> alarm_ = [this] { return has_begun(); };
  std::chrono::steady_clock::time_point next_look_{};
  std::chrono::steady_clock::time_point pause_end_{};
};

// Who is late, and which connection is cut, told from whom each rank waits for. Pure functions.

/// `awaited[r]`: the ranks from which rank r still expects something; nothing: r does not say, so
/// it is somewhere else, or frozen. Returns those that do not say it and are awaited; where nobody
/// awaits one of them, all that do not say it.
std::vector<int> late_ranks(const std::vector<std::optional<std::vector<int>>>& awaited);

/// Nothing passes between `rank` and any of `from`. No cut: -1.
struct Cut {
  int rank = -1;
  std::vector<int> from;
};

/// All ranks being there: two that wait for each other are cut off from each other (one that waits
/// alone may only wait for what the other cannot send yet); the result is the rank with the most of
/// those, the lowest of several.
Cut widest_cut(const std::vector<std::optional<std::vector<int>>>& awaited);

/// For the store: "0 2".
std::string encode_ranks(const std::vector<int>& ranks);
std::vector<int> decode_ranks(const std::string& text);

}  // namespace lockstep
