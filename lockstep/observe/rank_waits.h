#pragma once
// The time that a rank waits for a slower one, apart from the time in which bytes move. Pure
// functions.
//
// The slowest rank is found without a common clock. Each rank measures its time outside collectives
// between two moments at which all are together. The rank with the longest time kept the others
// waiting, by just the difference. The order of arrival at collectives would not show it: behind a
// slow rank all arrive at the later ones together.

#include <map>
#include <string>

namespace lockstep::inline internal {

/// Waits of one step, on one rank.
struct StepWaits {
  int slowest = -1;     ///< The rank that the others waited for; -1: alone.
  double waited_s = 0;  ///< For that rank.
  double moved_s = 0;   ///< In collectives after all had come: bytes under way.
  double others_s = 0;  ///< On the slowest: the mean wait of the other ranks for it. Else 0.
};

/// Packs `own_s` and `rank` into one number, so that the largest of all ranks' is the slowest
/// rank's, of equal ones the first's. Exact in whole microseconds for up to 2^20 ranks; more than
/// 2.3 hours count as 2.3 hours.
double with_rank(double own_s, int rank);

/// Times outside collectives, over all ranks.
struct OwnTimes {
  int ranks = 1;
  double sum_s = 0;
  double most = 0;  ///< The largest with_rank().
};

/// `own_s` is the time of `rank`, which spent `together_s` in collectives.
StepWaits split_waits(const OwnTimes& all, double own_s, int rank, double together_s);

/// Waits of many steps.
class WaitSums {
 public:
  void add(const StepWaits& waits, double step_s);
  /// Reduces the weight of all earlier steps by a factor in [0, 1].
  void fade(double factor);

  double waited_s() const { return waited_s_; }
  double moved_s() const { return moved_s_; }

  /// Parts of the steps' time. With a long wait for one rank: "waiting for rank 3: 54.0 %,
  /// communication: 2.0 %". Otherwise: "waiting for other ranks: 0.4 %, communication: 2.0 %";
  /// alone "communication: 0.0 %". A rank that keeps the others waiting adds ", others waited for
  /// this rank: 54.0 %".
  std::string text() const;
  /// "waiting for rank 3: 54 %", "others wait for rank 0: 54 %" on that rank; empty if neither part
  /// is large.
  std::string note() const;

 private:
  int awaited() const;  ///< The rank with a long wait for it; -1: none.
  double percent(double part_s) const;

  double seconds_ = 0, waited_s_ = 0, moved_s_ = 0, others_s_ = 0;
  int this_rank_ = -1;             // if the others waited for it
  std::map<int, double> by_rank_;  // of waited_s_
};

/// Below this part of the time no rank is named.
inline constexpr double kMuchWaitingPercent = 5;

}  // namespace lockstep::inline internal
