#pragma once
// Time that a rank waits until a slower one has come, apart from time in which bytes move. Pure
// functions.
//
// Who is slow needs no clock that ranks share: each counts the time that it spends in no
// collective between two moments at which all are together. Whoever counts most kept the others
// waiting, by just the difference. The order in which ranks come to collectives would not tell:
// behind a slow rank all come to the later ones together.

#include <cstdint>
#include <map>
#include <string>

namespace lockstep {

/// Of one step, on one rank.
struct StepWaits {
  int slowest = -1;     ///< The rank that the others waited for; -1: alone.
  double waited_s = 0;  ///< For that rank.
  double moved_s = 0;   ///< In collectives when all had come: bytes on their way.
  double others_s = 0;  ///< On the slowest: what each other rank waited for it, mean. Else 0.
};

/// `own_s` of `rank` in one number, so that the largest of all ranks' is the slowest rank's, of
/// equal ones the first's. Exact in whole microseconds for up to 2^20 ranks; more than 2.3 hours
/// count as 2.3 hours.
double with_rank(double own_s, int rank);

/// Of all ranks: the time that each spent in no collective.
struct OwnTimes {
  int ranks = 1;
  double sum_s = 0;
  double most = 0;  ///< The largest with_rank().
};

/// `own_s`: of `rank`, which spent `together_s` in collectives.
StepWaits split_waits(const OwnTimes& all, double own_s, int rank, double together_s);

/// Waits of many steps.
class WaitSums {
 public:
  void add(const StepWaits& waits, double step_s);
  /// Earlier steps count less from here on: factor in [0, 1].
  void fade(double factor);

  double waited_s() const { return waited_s_; }
  double moved_s() const { return moved_s_; }

  /// Parts of the steps' time: "waiting for rank 3: 54.0 %, communication: 2.0 %", where one rank
  /// is waited for much, else "waiting for other ranks: 0.4 %, communication: 2.0 %"; alone
  /// "communication: 0.0 %". On a rank that keeps the others waiting also
  /// ", others waited for this rank: 54.0 %".
  std::string text() const;
  /// "waiting for rank 3: 54 %", "slower than other ranks: 54 %"; empty where neither is much.
  std::string note() const;

 private:
  int awaited() const;  ///< The rank that is waited for much; -1: none.
  double percent(double part_s) const;

  double seconds_ = 0, waited_s_ = 0, moved_s_ = 0, others_s_ = 0;
  std::map<int, double> by_rank_;  // of waited_s_
};

/// Below this part of the time no rank is named.
inline constexpr double kMuchWaitingPercent = 5;

}  // namespace lockstep
