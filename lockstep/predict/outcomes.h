#pragma once
// The result of each picture, from all ranks to rank 0, over the store.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lockstep/world.h"

namespace lockstep {

struct Outcome {
  bool good = false;
  std::string text;  ///< The picture's line, or the reason why there is none.
};

/// Rank i % size handles picture i. One thread.
class Outcomes {
 public:
  /// For `pictures` pictures. Rank 0 calls `found` once for each, in the pictures' order, as soon
  /// as it and all before it are known.
  Outcomes(const World& world, size_t pictures, std::function<void(const Outcome&)> found);

  /// Adds one of this rank's pictures, in any order. Rank 0 also collects results of the others.
  void add(size_t picture, Outcome outcome);

  /// Rank 0 waits for the rest; other ranks return at once.
  /// Errors: kTimeout naming a rank that sent nothing for `patience`.
  void finish(std::chrono::milliseconds patience = std::chrono::minutes(10));

 private:
  void take(size_t picture, const std::string& value);
  void keep(size_t picture, Outcome outcome);
  void look();

  const World& world_;
  const size_t pictures_;
  std::function<void(const Outcome&)> found_;
  std::map<size_t, Outcome> early_;  // rank 0: known, but not all before them
  size_t handed_on_ = 0;             // rank 0: pictures below are reported
  std::vector<size_t> next_;         // rank 0: for each rank, its first missing picture
};

// A line of cls_results.txt: the classes of a picture.

/// "a.png\t[{"label": "cat", "class": 3, "probability": 0.912345}, ...]": the five most probable
/// classes, of equal ones the first; `names` has one for each class. A probability that is not a
/// number is null and comes last. Invalid UTF-8 in a name is replaced. Without the line feed.
std::string class_line(const std::string& file, std::span<const float> probabilities,
                       const std::vector<std::string>& names);

}  // namespace lockstep
